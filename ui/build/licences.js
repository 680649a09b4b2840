// Lists the packages that the built UI contains, with their licences, in LICENCES.md. With --check it fails if that list is out of date, or
// if a licence is not among the permissive ones.
import { readFileSync, writeFileSync } from 'node:fs'

const permissive = new Set([
  'MIT',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'MIT OR Apache-2.0',
  '(Apache-2.0 AND BSD-3-Clause)',
  'EPL-2.0 OR GPL-3.0-or-later',
  'Unlicense',
])
const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'))
const rows = Object.entries(lock.packages)
  .filter(
    ([path, data]) =>
      path.startsWith('node_modules/') && !data.dev && !data.optional && !data.devOptional && !data.peer,
  )
  .map(([path, data]) => ({
    name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
    version: data.version,
    licence: data.license ?? 'unknown',
  }))
  .sort((a, b) => a.name.localeCompare(b.name) || a.version.localeCompare(b.version))

const text = [
  '# Licences of the packages in the web UI',
  '',
  'Written by `npm run licences`. elkjs is used unchanged under EPL-2.0, the only one that is not permissive; it is a file of its own.',
  '',
  '| package | version | licence |',
  '|---|---|---|',
  ...rows.map((row) => `| ${row.name} | ${row.version} | ${row.licence} |`),
  '',
].join('\n')

const file = new URL('../LICENCES.md', import.meta.url)
const refused = rows.filter((row) => !permissive.has(row.licence))
if (refused.length > 0) {
  process.stderr.write(`licences: not permissive: ${refused.map((row) => `${row.name} (${row.licence})`).join(', ')}\n`)
  process.exit(1)
}
if (!process.argv.includes('--check')) {
  writeFileSync(file, text)
} else if (readFileSync(file, 'utf8') !== text) {
  process.stderr.write('licences: LICENCES.md is out of date; run "npm run licences" in ui\n')
  process.exit(1)
}
