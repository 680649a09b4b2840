Feature: OpenAPI call

  Scenario: Parameters of the path, the query, headers and cookies
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: openapi1, version: '1.0.0'}
    do:
      - c:
          call: openapi
          with:
            document: {name: services, endpoint: {uri: 'https://httpbin.org/openapi.yaml'}}
            operationId: getOrder
            parameters: {id: '${ .id }', tags: [a, b c], states: [new, old], filter: {a: 1}, X-Trace: t1, session: s1}
          output: {as: '{method, path, args, trace: .headers["X-Trace"], cookie: .headers.Cookie}'}
    """
    And given the workflow input is:
    """yaml
    id: 7
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    method: GET
    path: /anything/orders/7
    args: {tags: 'a,b c', states: 'new,old', 'filter[a]': '1'}
    trace: t1
    cookie: '⟦redacted⟧'
    """

  Scenario: A body of the members that are no parameters, and an authentication
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: openapi2, version: '1.0.0'}
    use: {authentications: {token: {bearer: {token: abc}}}}
    do:
      - c:
          call: openapi
          with:
            document: {endpoint: 'https://httpbin.org/openapi.yaml'}
            operationId: putOrder
            parameters: {id: 7, sku: '${ .sku }', parts: [{sku: p1}]}
            authentication: {use: token}
          output: {as: '{method, json, type: .headers["Content-Type"], authorization: .headers.Authorization}'}
    """
    And given the workflow input is:
    """yaml
    sku: s1
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    method: PUT
    json: {sku: s1, parts: [{sku: p1}]}
    type: application/json
    authorization: '⟦redacted⟧'
    """

  Scenario: The whole body, and output raw
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: openapi3, version: '1.0.0'}
    do:
      - c:
          call: openapi
          with:
            document: {endpoint: 'https://httpbin.org/openapi.yaml'}
            operationId: putOrder
            parameters: {id: 7, body: '${ . }', service: anything}
            authentication: {basic: {username: u, password: p}}
            output: raw
          output: {as: '@base64d | fromjson | {json, path}'}
    """
    And given the workflow input is:
    """yaml
    sku: s1
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    json: {sku: s1}
    path: /anything/orders/7
    """

  Scenario: Arguments that do not match the description
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: openapi4, version: '1.0.0'}
    do:
      - c:
          call: openapi
          with:
            document: {endpoint: 'https://httpbin.org/openapi.yaml'}
            operationId: putOrder
            parameters: {id: '${ .id }', body: '${ .order }'}
    """
    And given the workflow input is:
    """yaml
    id: 0
    order: {sku: a}
    """
    When the workflow is executed
    Then the workflow should fault with error:
    """yaml
    type: https://open-workflow-specification.org/spec/1.0.0/errors/validation
    status: 400
    instance: /do/0/c
    detail: >-
      the arguments of the operation "putOrder" do not match its description: the path parameter "id" does not match its
      schema: minimum: got 0, want 1; the body does not match its schema: "/sku": minLength: got 1, want 2
    """

  Scenario: A redirection is an error, and followed with redirect
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: openapi5, version: '1.0.0'}
    do:
      - without:
          try:
            - c: {call: openapi, with: {document: {endpoint: 'https://httpbin.org/openapi.yaml'}, operationId: move}}
          catch: {do: [{e: {set: {status: '${ $error.status }'}}}]}
          export: {as: '.status'}
      - with:
          call: openapi
          with: {document: {endpoint: 'https://httpbin.org/openapi.yaml'}, operationId: move, redirect: true, output: response}
          output: {as: '{without: $context, status: .statusCode, path: .content.path}'}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    without: 302
    status: 200
    path: /anything
    """
