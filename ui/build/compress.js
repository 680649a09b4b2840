// Replaces each file of the assets that gzip makes smaller by its compressed form, NAME.gz, which the server sends as it is: the programs that
// embed the files are 2 MB smaller. Called last of the build.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const assets = new URL('../../internal/webui/dist/assets/', import.meta.url).pathname
const packet = 1024 // fewer bytes are one packet either way

for (const name of readdirSync(assets)) {
  const plain = readFileSync(join(assets, name))
  const compressed = gzipSync(plain, { level: 9 })
  if (plain.length < packet || compressed.length >= plain.length) continue
  writeFileSync(join(assets, `${name}.gz`), compressed)
  rmSync(join(assets, name))
}
