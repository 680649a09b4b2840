Feature: Functions, and schemas from outside

  Scenario: A function by its name, with schemas of its own
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s45, version: '1.0.0'}
    use:
      functions:
        double:
          input: {schema: {document: {type: object, required: [n]}}}
          output: {schema: {document: {type: object, required: [doubled]}}}
          set: {doubled: '${ .n * 2 }'}
    do:
      - first: {call: double, with: {n: '${ .n }'}}
      - second: {call: double, with: {n: '${ .doubled }'}}
    """
    And given the workflow input is:
    """yaml
    n: 3
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    doubled: 12
    """

  Scenario: An input of a function that does not match its schema
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s46, version: '1.0.0'}
    use: {functions: {double: {input: {schema: {document: {type: object, required: [n]}}}, set: {doubled: '${ .n * 2 }'}}}}
    do:
      - first: {call: double, with: {m: 1}}
    """
    When the workflow is executed
    Then the workflow should fault with error:
    """yaml
    type: https://open-workflow-specification.org/spec/1.0.0/errors/validation
    status: 400
    """

  Scenario: A function of a catalog, and one by its address
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s47, version: '1.0.0'}
    use: {catalogs: {shop: {endpoint: 'https://httpbin.org/catalog'}}}
    do:
      - first: {call: 'double:1.0.0@shop', with: {n: 3}}
      - second: {call: 'https://httpbin.org/catalog/functions/double/1.0.0/function.yaml', with: {n: '${ .doubled }'}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    doubled: 12
    """

  Scenario: A schema that is a resource
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s48, version: '1.0.0'}
    do:
      - s:
          input: {schema: {format: json, resource: {endpoint: 'https://httpbin.org/schema.json'}}}
          set: {x: 1}
    """
    And given the workflow input is:
    """yaml
    n: a text
    """
    When the workflow is executed
    Then the workflow should fault with error:
    """yaml
    type: https://open-workflow-specification.org/spec/1.0.0/errors/validation
    status: 400
    """
