Feature: Task

  Scenario: A condition that does not hold skips the task and all its properties
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s5, version: '1.0.0'}
    do:
      - s: {if: .n > 9, input: {from: '{x: 1}'}, set: {never: true}, output: {as: '{y: 1}'}, export: {as: '{z: 1}'}, then: end}
      - t: {set: {n: '${ .n }', context: '${ $context }'}}
    """
    And given the workflow input is:
    """yaml
    n: 7
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    n: 7
    context: {n: 7}
    """

  Scenario: The data of a task
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s6, version: '1.0.0'}
    do:
      - s:
          metadata: {note: kept}
          input: {schema: {document: {type: object, required: [n]}}, from: '{m: .n}'}
          set: {sum: '${ .m + $input.m }'}
          output: {as: '{out: .sum}', schema: {document: {type: object, required: [out]}}}
          export: {as: '$context + {kept: $output.out, of: $task.name}', schema: {document: {type: object}}}
      - t: {set: {output: '${ .out }', kept: '${ $context.kept }', of: '${ $context.of }', at: '${ $task.reference }'}}
    """
    And given the workflow input is:
    """yaml
    n: 7
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    output: 14
    kept: 14
    of: s
    at: /do/1/t
    """

  Scenario: An input that does not match its schema
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s7, version: '1.0.0'}
    do:
      - s: {input: {schema: {document: {type: string}}}, set: {a: 1}}
    """
    And given the workflow input is:
    """yaml
    n: 1
    """
    When the workflow is executed
    Then the workflow should fault with error:
    """yaml
    type: https://open-workflow-specification.org/spec/1.0.0/errors/validation
    status: 400
    instance: /do/0/s
    """

  Scenario: Flow directives
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s8, version: '1.0.0'}
    do:
      - a: {set: {seen: [a]}, then: c}
      - b: {set: {seen: '${ .seen + ["b"] }'}, then: continue}
      - inner:
          do:
            - d: {set: {seen: '${ .seen + ["d"] }'}, then: exit}
            - e: {set: {seen: '${ .seen + ["e"] }'}}
          then: end
      - c: {set: {seen: '${ .seen + ["c"] }'}, then: b}
      - never: {set: {never: true}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    seen: [a, c, b, d]
    """

  Scenario: A timeout of a task
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s9, version: '1.0.0'}
    do:
      - w: {wait: PT1H, timeout: {after: {milliseconds: 100}}}
    """
    When the workflow is executed
    Then the workflow should fault with error:
    """yaml
    type: https://open-workflow-specification.org/spec/1.0.0/errors/timeout
    status: 408
    instance: /do/0/w
    """
