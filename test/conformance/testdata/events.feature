Feature: Emit and listen

  Scenario: Listen to one event, with all its attributes
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s25, version: '1.0.0'}
    do:
      - f:
          fork:
            branches:
              - l:
                  listen:
                    to: {one: {with: {type: scenarios.one, source: 'https://one.example', id: a1, subject: s, datacontenttype: application/json, dataschema: 'https://one.example/schema', time: '2026-03-01T12:00:00Z', data: {n: 7}}}}
                    read: envelope
              - e: {emit: {event: {with: {type: scenarios.one, source: 'https://one.example', id: a1, subject: s, datacontenttype: application/json, dataschema: 'https://one.example/schema', time: '2026-03-01T12:00:00Z', data: {n: 7}}}}}
          output: {as: '.[0][0] | {type, source, id, subject, n: .data.n}'}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    type: scenarios.one
    source: https://one.example
    id: a1
    subject: s
    n: 7
    """

  Scenario: Listen to any event until a condition holds
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s26, version: '1.0.0'}
    do:
      - f:
          fork:
            branches:
              - l: {listen: {to: {any: [{with: {type: scenarios.any}}], until: length == 2}}, output: {as: map(.n)}}
              - e: {for: {in: '[1, 2]'}, do: [{x: {emit: {event: {with: {type: scenarios.any, data: {n: '${ $item }'}}}}}}]}
          output: {as: '{taken: .[0]}'}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    taken: [1, 2]
    """

  Scenario: Listen to any event until another one, and foreach
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s27, version: '1.0.0'}
    do:
      - f:
          fork:
            branches:
              - l:
                  listen: {to: {any: [{with: {type: scenarios.part}}], until: {one: {with: {type: scenarios.stop}}}}}
                  foreach: {item: part, at: i, do: [{s: {set: {n: '${ $part.n * 10 + $i }'}}}], output: {as: .n}, export: {as: '{last: .}'}}
              - e: {do: [{a: {emit: {event: {with: {type: scenarios.part, data: {n: 1}}}}}}, {b: {emit: {event: {with: {type: scenarios.part, data: {n: 2}}}}}}, {c: {emit: {event: {with: {type: scenarios.stop}}}}}]}
          output: {as: '{items: .[0], last: $context.last}'}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    items: [10, 21]
    last: 21
    """

  Scenario: Listen to all, correlated
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s28, version: '1.0.0'}
    do:
      - f:
          fork:
            branches:
              - l:
                  listen:
                    to:
                      all:
                        - {with: {type: scenarios.paid}, correlate: {order: {from: .data.order, expect: '${ .id }'}}}
                        - {with: {type: scenarios.sent}, correlate: {order: {from: .data.order, expect: '${ .id }'}}}
                  output: {as: map(.n) | sort}
              - e:
                  do:
                    - a: {emit: {event: {with: {type: scenarios.paid, data: {order: other, n: 1}}}}}
                    - b: {emit: {event: {with: {type: scenarios.sent, data: {order: other, n: 2}}}}}
                    - c: {emit: {event: {with: {type: scenarios.paid, data: {order: mine, n: 3}}}}}
                    - d: {emit: {event: {with: {type: scenarios.sent, data: {order: mine, n: 4}}}}}
                  input: {from: '{id: .id}'}
          output: {as: '{taken: .[0]}'}
    """
    And given the workflow input is:
    """yaml
    id: mine
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    taken: [3, 4]
    """
