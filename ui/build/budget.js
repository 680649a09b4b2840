// Fails when the code that a page needs on its first load is larger than its budget (gzip). Called after the build.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const dist = new URL('../../internal/webui/dist/', import.meta.url).pathname
const budget = 250_000

const size = (name) => gzipSync(readFileSync(join(dist, name))).length
const html = readFileSync(join(dist, 'index.html'), 'utf8')
const first = [...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map((match) => match[1])
const total = first.reduce((sum, name) => sum + size(name), 0)

const chunks = readdirSync(join(dist, 'assets'))
  .filter((name) => /\.(js|css)$/.test(name) && !first.includes(`assets/${name}`))
  .map((name) => ({ name, bytes: size(`assets/${name}`) }))
  .sort((a, b) => b.bytes - a.bytes)

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`
const print = (line) => process.stdout.write(`${line}\n`)
print(`first load ${kilobytes(total)} of ${kilobytes(budget)} compressed (${first.length} files)`)
for (const { name, bytes } of chunks.slice(0, 8)) print(`on demand  ${kilobytes(bytes)} ${name}`)
if (total > budget) {
  process.stderr.write('budget: the first load is over its budget; load the new part on demand\n')
  process.exit(1)
}
