Feature: Raise

  Scenario: Every member of an error, by name
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s35, version: '1.0.0'}
    use: {errors: {mine: {type: 'https://e.example/x', status: 418, title: '${ "T" + .n }', detail: D, instance: /do/0/r}}}
    do:
      - r: {raise: {error: mine}}
    """
    And given the workflow input is:
    """yaml
    n: '7'
    """
    When the workflow is executed
    Then the workflow should fault with error:
    """yaml
    type: https://e.example/x
    status: 418
    title: T7
    detail: D
    instance: /do/0/r
    """
