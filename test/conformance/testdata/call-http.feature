Feature: HTTP call

  Scenario: Method, headers, query and body
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s10, version: '1.0.0'}
    do:
      - c:
          call: http
          with:
            method: post
            endpoint: https://httpbin.org/anything/{id}
            headers: {X-One: '${ .one }'}
            query: {q: '${ .id }'}
            body: {id: '${ .id }', list: [1, '${ .one }']}
          output: {as: '{method, path, args, json, one: .headers["X-One"], type: .headers["Content-Type"]}'}
    """
    And given the workflow input is:
    """yaml
    id: a1
    one: first
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    method: POST
    path: /anything/a1
    args: {q: a1}
    json: {id: a1, list: [1, first]}
    one: first
    type: application/json
    """

  Scenario: An endpoint with a query of a template, and one that is an expression
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s11, version: '1.0.0'}
    do:
      - a: {call: http, with: {method: get, endpoint: 'https://httpbin.org/anything{?id}'}, export: {as: '{a: $task.output.args}'}, output: {as: '{id: "b"}'}}
      - b: {call: http, with: {method: get, endpoint: {uri: '${ "http://httpbin.org/anything?id=" + .id }'}}, output: {as: '$context + {b: .args}'}}
    """
    And given the workflow input is:
    """yaml
    id: a1
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    a: {id: a1}
    b: {id: b}
    """

  Scenario: Output raw
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s12, version: '1.0.0'}
    do:
      - c: {call: http, with: {method: get, endpoint: 'https://httpbin.org/text', output: raw}, output: {as: '{text: @base64d}'}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    text: a text
    """

  Scenario: A form
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s13, version: '1.0.0'}
    do:
      - c:
          call: http
          with:
            method: put
            endpoint: https://httpbin.org/anything
            headers: {Content-Type: application/x-www-form-urlencoded}
            body: {a: 1, list: [x, y]}
          output: {as: '{data, method}'}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    data: a=1&list=x&list=y
    method: PUT
    """

  Scenario: A status that is no success
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s14, version: '1.0.0'}
    do:
      - c: {call: http, with: {method: get, endpoint: 'https://httpbin.org/status/418'}}
    """
    When the workflow is executed
    Then the workflow should fault with error:
    """yaml
    type: https://open-workflow-specification.org/spec/1.0.0/errors/communication
    status: 418
    instance: /do/0/c
    """

  Scenario: A redirection is followed with redirect, and an error without it
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s15, version: '1.0.0'}
    do:
      - t:
          try: [{c: {call: http, with: {method: get, endpoint: 'https://httpbin.org/redirect'}}}]
          catch: {do: [{h: {set: {status: '${ $error.status }'}}}]}
      - d:
          call: http
          with: {method: get, endpoint: 'https://httpbin.org/redirect', redirect: true, output: response}
          input: {from: '{before: .status}'}
          output: {as: '{before: $input.before, status: .statusCode, path: .content.path}'}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    before: 302
    status: 200
    path: /anything
    """
