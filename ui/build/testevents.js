// A reporter of Vitest that prints the results as events of `go test -json`, so that tools/testreport counts the tests in a browser, names the
// failed ones and lets them run a second time as those of Go. Each file of tests is a package.
import process from 'node:process'

export default class TestEvents {
  onTestCaseResult(test) {
    const { state, errors } = test.result()
    const action = { passed: 'pass', failed: 'fail' }[state] ?? 'skip'
    this.#test(test.module, test.fullName, action, errors, test.diagnostic()?.duration)
  }

  onTestModuleEnd(module) {
    // What fails before or after the tests fails none of them.
    const errors = [module, ...module.children.allSuites()].flatMap((suite) => suite.errors())
    this.#test(module, 'hooks', errors.length > 0 ? 'fail' : 'pass', errors)
    this.#print({
      Action: module.ok() && errors.length === 0 ? 'pass' : 'fail',
      Package: packageOf(module),
      Elapsed: module.diagnostic().duration / 1000,
    })
  }

  // Errors of the run itself belong to no file.
  onTestRunEnd(_modules, errors) {
    if (errors.length > 0) {
      const Package = 'ui/e2e'
      this.#print({ Action: 'output', Package, Output: errors.map(textOf).join('') })
      this.#print({ Action: 'fail', Package })
    }
  }

  #test(module, name, action, errors = [], milliseconds = 0) {
    const Package = packageOf(module)
    const Test = name.replaceAll('/', '_') // a slash begins the name of a part
    if (errors.length > 0) {
      this.#print({ Action: 'output', Package, Test, Output: `--- FAIL: ${name}\n${errors.map(textOf).join('')}` })
    }
    this.#print({ Action: action, Package, Test, Elapsed: milliseconds / 1000 })
  }

  #print(event) {
    process.stdout.write(`${JSON.stringify(event)}\n`)
  }
}

function packageOf(module) {
  return `ui/${module.relativeModuleId}`
}

function textOf(error) {
  const lines = [error.stack ?? error.message, error.diff].filter(Boolean).join('\n').split('\n')
  return lines
    .filter((line) => !line.includes('/node_modules/'))
    .map((line) => `    ${line}\n`)
    .join('')
}
