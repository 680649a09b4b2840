Feature: Programs

  Scenario: A script with arguments, an environment and an input
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s49, version: '1.0.0'}
    do:
      - s:
          run:
            script:
              language: js
              code: |
                console.log([...process.argv.slice(2), process.env.NAME, process.stdin.read()].join(" "))
              arguments: [one, '${ .two }']
              environment: {NAME: three}
              stdin: four
    """
    And given the workflow input is:
    """yaml
    two: two
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    "one two three four\n"
    """

  Scenario: The source of a script is a resource
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s50, version: '1.0.0'}
    do:
      - s: {run: {script: {language: js, source: {endpoint: 'https://httpbin.org/script.js'}}}}
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    "a script\n"
    """

  Scenario: A shell command, and every result
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s51, version: '1.0.0'}
    do:
      - s:
          run:
            shell:
              command: 'echo "$1 $2 $NAME $(cat)"; echo problem >&2; exit 3'
              arguments: [one, '${ .two }']
              environment: {NAME: three}
              stdin: four
            return: all
    """
    And given the workflow input is:
    """yaml
    two: two
    """
    When the workflow is executed
    Then the workflow should complete with output:
    """yaml
    code: 3
    stdout: "one two three four\n"
    stderr: "problem\n"
    """

  Scenario: A command that fails
    Given a workflow with definition:
    """yaml
    document: {dsl: '1.0.3', namespace: scenarios, name: s52, version: '1.0.0'}
    do:
      - s: {run: {shell: {command: 'echo problem >&2; exit 3'}, return: stdout}}
    """
    When the workflow is executed
    Then the workflow should fault with error:
    """yaml
    type: https://open-workflow-specification.org/spec/1.0.0/errors/runtime
    status: 500
    """
