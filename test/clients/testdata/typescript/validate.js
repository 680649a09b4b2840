// Checks a file against OpenAPI 3.1, and that its references, operations and parameters are complete: node validate.js FILE
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

// This folder has no packages of its own.
const require = createRequire(new URL('../../../../ui/package.json', import.meta.url))
const { createConfig, lintFromString } = require('@redocly/openapi-core')

const file = process.argv[2] ?? ''
const config = await createConfig({ extends: ['recommended-strict'] })
const problems = await lintFromString({ source: readFileSync(file, 'utf8'), absoluteRef: file, config })
for (const problem of problems) {
  process.stderr.write(`${problem.location[0]?.pointer ?? ''}: ${problem.message} (${problem.ruleId})\n`)
}
process.exit(problems.length > 0 ? 1 : 0)
