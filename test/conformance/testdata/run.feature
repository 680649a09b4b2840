Feature: Run of a workflow

  Scenario: With an input and its output
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: child, version: '1.0.0'}
    do:
      - s: {set: {got: '${ . }'}}
    """
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s31, version: '1.0.0'}
    do:
      - r: {run: {workflow: {namespace: scenarios, name: child, version: latest, input: {n: '${ .n }'}}}}
    """
    And given the workflow input is:
    """yaml
    n: 7
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    got: {n: 7}
    """

  Scenario: Without an input, and with every result
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: child, version: '1.0.0'}
    do:
      - s: {set: {got: '${ . }'}}
    """
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s32, version: '1.0.0'}
    do:
      - r: {run: {workflow: {namespace: scenarios, name: child, version: '1.0.0'}, await: true, return: all}, output: {as: '{code, out: .stdout}'}}
    """
    And given the workflow input is:
    """yaml
    n: 7
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    code: 0
    out: {got: {n: 7}}
    """

  Scenario: Without waiting
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: child, version: '1.0.0'}
    do:
      - s: {set: {got: '${ . }'}}
    """
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s33, version: '1.0.0'}
    do:
      - r: {run: {workflow: {namespace: scenarios, name: child, version: latest}, await: false}}
    """
    And given the workflow input is:
    """yaml
    n: 7
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    n: 7
    """

  Scenario: Its error
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: failing, version: '1.0.0'}
    do:
      - r: {raise: {error: {type: 'https://e.example/x', status: 418, title: T}}}
    """
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s34, version: '1.0.0'}
    do:
      - r: {run: {workflow: {namespace: scenarios, name: failing, version: latest}}}
    """
    When the workflow is executed
    Then the workflow should fault with error:
    """yaml
    type: https://e.example/x
    status: 418
    title: T
    instance: /do/0/r
    """
