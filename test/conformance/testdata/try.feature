Feature: Try

  Scenario: A filter of errors, and then
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s36, version: '1.0.0'}
    do:
      - t:
          try: [{r: {raise: {error: {type: 'https://e.example/x', status: 418, title: T, detail: D}}}}]
          catch: {errors: {with: {type: 'https://e.example/x', status: 418, title: T, detail: D, instance: /do/0/t/try/0/r}}, as: e, do: [{h: {set: {title: '${ $e.title }'}}}], then: end}
      - never: {set: {never: true}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    title: T
    """

  Scenario: Conditions see the error
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s37, version: '1.0.0'}
    do:
      - t:
          try:
            - u:
                try: [{r: {raise: {error: {type: 'https://e.example/x', status: 418}}}}]
                catch: {when: .status == 418, exceptWhen: $error.status > 400, do: [{never: {set: {never: true}}}]}
          catch: {do: [{h: {set: {outer: true}}}]}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    outer: true
    """

  Scenario: Retries with a policy by name
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s38, version: '1.0.0'}
    use:
      retries:
        often:
          when: .status == 503
          exceptWhen: .status == 500
          delay: {milliseconds: 20}
          backoff: {exponential: {}}
          limit: {attempt: {count: 2, duration: {seconds: 30}}, duration: PT1M}
          jitter: {from: {milliseconds: 1}, to: {milliseconds: 5}}
    do:
      - t:
          try: [{c: {call: http, with: {method: get, endpoint: 'https://httpbin.org/status/503'}}}]
          catch: {retry: often, do: [{h: {set: {status: '${ $error.status }'}}}]}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    status: 503
    """
    And c should run after t

  Scenario: Back-off constant and linear
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s39, version: '1.0.0'}
    do:
      - t:
          try: [{r: {raise: {error: {type: 'https://e.example/x', status: 1}}}}]
          catch: {retry: {delay: PT0.01S, backoff: {constant: {}}, limit: {attempt: {count: 1}}}, do: [{h: {set: {a: 1}}}]}
      - u:
          try: [{r: {raise: {error: {type: 'https://e.example/x', status: 1}}}}]
          catch: {retry: {delay: PT0.01S, backoff: {linear: {}}, limit: {attempt: {count: 1}}}, do: [{h: {set: {b: 1}}}]}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    b: 1
    """
