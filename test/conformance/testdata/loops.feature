Feature: For and fork

  Scenario: The variables of a loop, and while
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s21, version: '1.0.0'}
    do:
      - each:
          for: {each: pet, in: .pets, at: i}
          while: $i < 2
          do: [{s: {set: {names: '${ (.names // []) + ["\($i) \($pet)"] }'}}}]
    """
    And given the workflow input is:
    """yaml
    pets: [a, b, c]
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    names: [0 a, 1 b]
    """

  Scenario: An array of objects in place
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s22, version: '1.0.0'}
    do:
      - each:
          for: {in: [{a: 1}, {a: '${ .two }'}]}
          do: [{s: {set: {two: '${ .two }', sum: '${ (.sum // 0) + $item.a * ($index + 1) }'}}}]
          output: {as: '{sum}'}
    """
    And given the workflow input is:
    """yaml
    two: 2
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    sum: 5
    """

  Scenario: Branches have the outputs of the fork, in their order
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s23, version: '1.0.0'}
    do:
      - f: {fork: {branches: [{slow: {wait: PT0.3S, output: {as: '"slow"'}}}, {fast: {set: '${ "fast" }'}}]}, output: {as: '{out: .}'}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    out: [slow, fast]
    """

  Scenario: The first branch of a competing fork
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s24, version: '1.0.0'}
    do:
      - f: {fork: {compete: true, branches: [{slow: {wait: {hours: 1}}}, {fast: {set: {winner: fast}}}]}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    winner: fast
    """
