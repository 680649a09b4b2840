Feature: Workflow

  Scenario: Every property of the document
    Given a workflow with definition:
    """yaml
    document:
      dsl: '1.0.3'
      namespace: scenarios
      name: document
      version: '1.2.3-rc.1+build.5'
      title: A document
      summary: It has everything.
      tags: {team: a}
      metadata: {labels: {order: '${ .order }'}}
    do:
      - s: {set: {version: '${ $workflow.definition.document.version }', tags: '${ $workflow.definition.document.tags }'}}
    """
    And given the workflow input is:
    """yaml
    order: a1
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    version: 1.2.3-rc.1+build.5
    tags: {team: a}
    """

  Scenario: Input and output are mapped and checked
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s1, version: '1.0.0'}
    input:
      schema: {format: json, document: {type: object, required: [n]}}
      from: '{m: .n}'
    output:
      schema: {document: {type: object, properties: {twice: {type: number}}}}
      as: '{twice: (.m * 2)}'
    do:
      - s: {set: '${ . }'}
    """
    And given the workflow input is:
    """yaml
    n: 7
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    twice: 14
    """

  Scenario: An output that does not match its schema
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s2, version: '1.0.0'}
    output: {schema: {document: {type: string}}}
    do:
      - s: {set: {a: 1}}
    """
    When the workflow is executed
    Then the workflow should fault with error:
    """yaml
    type: https://open-workflow-specification.org/spec/1.0.0/errors/validation
    status: 400
    instance: /output
    """

  Scenario: Loose evaluation
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s3, version: '1.0.0'}
    evaluate: {language: jq, mode: loose}
    do:
      - s: {set: {sum: 1 + 2, text: a text, path: .n}}
    """
    And given the workflow input is:
    """yaml
    n: 7
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    sum: 3
    text: a text
    path: 7
    """

  Scenario: A timeout by name
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s4, version: '1.0.0'}
    use: {timeouts: {short: {after: PT0.2S}}}
    do:
      - outer:
          try: [{w: {timeout: short, wait: {days: 1}}}]
          catch: {errors: {with: {type: 'https://open-workflow-specification.org/spec/1.0.0/errors/timeout', status: 408}}, do: [{h: {set: {caught: true}}}]}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    caught: true
    """

  Scenario: A secret
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s53, version: '1.0.0'}
    use: {secrets: [login]}
    do:
      - c: {call: http, with: {method: get, endpoint: {uri: 'https://httpbin.org/basic-auth/user/secret', authentication: {basic: {use: login}}}}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    authenticated: true
    user: user
    """

  Scenario: Workflows with schedules, of which one is started by hand
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s54a, version: '1.0.0'}
    schedule: {cron: '0 0 1 1 *'}
    do:
      - s: {set: {x: 1}}
    """
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s54b, version: '1.0.0'}
    schedule: {on: {one: {with: {type: never}}}}
    do:
      - s: {set: {x: 1}}
    """
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s54, version: '1.0.0'}
    schedule: {every: {hours: 1000}}
    do:
      - s: {set: {x: 1}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    x: 1
    """
