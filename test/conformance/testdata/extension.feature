Feature: Extensions

  Scenario: Tasks before and after, around a task
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s43, version: '1.0.0'}
    use:
      extensions:
        - log:
            extend: all
            when: $task.name != "out"
            before: [{b: {set: {x: '${ "before \($task.name)" }'}, export: {as: '{seen: ([$context.seen // []] | flatten + [$task.name])}'}}}]
            after: [{a: {set: {x: 1}, export: {as: '{seen: ($context.seen + [$task.output.n])}'}}}]
    do:
      - s: {set: {n: 7}}
      - out: {set: {seen: '${ $context.seen }', n: '${ .n }'}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    seen: [s, 7]
    n: 7
    """

  Scenario: In place of a call
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s44, version: '1.0.0'}
    use: {extensions: [{mock: {extend: call, when: '$task.with.endpoint | startswith("https://nowhere")', before: [{m: {set: {mocked: true}, then: exit}}]}}]}
    do:
      - c: {call: http, with: {method: get, endpoint: 'https://nowhere.example'}, output: {as: '. + {mapped: true}'}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    mocked: true
    mapped: true
    """
