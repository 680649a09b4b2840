Feature: Set, switch and wait

  Scenario: Set by an expression
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s40, version: '1.0.0'}
    do:
      - s: {set: '${ .n + 1 | {n: .} }'}
    """
    And given the workflow input is:
    """yaml
    n: 7
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    n: 8
    """

  Scenario: Switch to a task, to the end and by default
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s41, version: '1.0.0'}
    do:
      - s: {switch: [{high: {when: .n > 9, then: end}}, {mine: {when: .n == 7, then: t}}, {other: {then: exit}}]}
      - never: {set: {never: true}}
      - t: {set: {chosen: t}}
    """
    And given the workflow input is:
    """yaml
    n: 7
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    chosen: t
    """

  Scenario: Every unit of a duration
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s42, version: '1.0.0'}
    do:
      - w: {wait: {days: 0, hours: 0, minutes: 0, seconds: 0, milliseconds: 50}}
      - x: {wait: '${ {milliseconds: .n} }'}
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
