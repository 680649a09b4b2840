Feature: Authentication

  Scenario: Basic, by name
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s16, version: '1.0.0'}
    use: {authentications: {me: {basic: {username: user, password: '${ .password }'}}}}
    do:
      - c: {call: http, with: {method: get, endpoint: {uri: 'https://httpbin.org/basic-auth/user/pass', authentication: {use: me}}}, output: {as: '{user}'}}
    """
    And given the workflow input is:
    """yaml
    password: pass
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    user: user
    """

  Scenario: Bearer
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s17, version: '1.0.0'}
    do:
      - c:
          call: http
          with: {method: get, endpoint: {uri: https://httpbin.org/anything, authentication: {bearer: {token: abc}}}, headers: {X-Scheme: '${ $authorization.scheme }'}}
          output: {as: '{scheme: .headers["X-Scheme"], sent: (.headers.Authorization != null)}'}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    scheme: Bearer
    sent: true
    """

  Scenario: OAuth2 with every property of a client
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s18, version: '1.0.0'}
    do:
      - c:
          call: http
          with:
            method: get
            endpoint:
              uri: https://httpbin.org/anything
              authentication:
                oauth2:
                  authority: https://httpbin.org
                  endpoints: {token: /oauth2/token, revocation: /oauth2/revoke, introspection: /oauth2/introspect}
                  grant: client_credentials
                  client: {id: me, secret: 'a secret of 32 bytes or more, for HS256', authentication: client_secret_jwt}
                  request: {encoding: application/x-www-form-urlencoded}
                  issuers: ['https://httpbin.org']
                  scopes: [read]
                  audiences: [shop]
          output: {as: '{sent: (.headers.Authorization != null)}'}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    sent: true
    """

  Scenario: OAuth2 with an assertion
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s19, version: '1.0.0'}
    do:
      - c:
          call: http
          with:
            method: get
            endpoint:
              uri: https://httpbin.org/anything
              authentication:
                oauth2: {authority: 'https://httpbin.org', grant: password, username: u, password: p, client: {id: me, assertion: a.b.c, authentication: private_key_jwt}}
          output: {as: '{sent: (.headers.Authorization != null)}'}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    sent: true
    """

  Scenario: OpenID Connect and a token exchange
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s20, version: '1.0.0'}
    do:
      - c:
          call: http
          with:
            method: get
            endpoint:
              uri: https://httpbin.org/anything
              authentication:
                oidc:
                  authority: https://httpbin.org
                  grant: urn:ietf:params:oauth:grant-type:token-exchange
                  client: {id: me, secret: s}
                  subject: {token: t1, type: 'urn:ietf:params:oauth:token-type:access_token'}
                  actor: {token: t2, type: 'urn:ietf:params:oauth:token-type:access_token'}
          output: {as: '{sent: (.headers.Authorization != null)}'}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    sent: true
    """

  Scenario: Digest
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s55, version: '1.0.0'}
    do:
      - c: {call: http, with: {method: get, endpoint: {uri: 'https://httpbin.org/digest-auth/user', authentication: {digest: {username: user, password: pass}}}}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    authenticated: true
    user: user
    """
