// Checks which folders and files of the web UI import each other.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import ts from 'typescript'

/**
 * The folders of src, each line one layer: a folder may import those of the lines above it, and none of its own line or of those below. What
 * pages share is in a line above them; a page that another one needs moves up.
 */
export const layers = [
  ['gen'],
  ['api'],
  ['kit'],
  ['annotations', 'app', 'graph', 'labels', 'payload'],
  ['control', 'session', 'start'],
  ['access', 'audit', 'dispatchers', 'events', 'projects', 'run', 'runs', 'system', 'webhooks', 'workers', 'workflows'],
  ['batches', 'problems'],
  ['shell'],
  ['main.tsx'],
]

/** sources returns the text of every source file below a folder, by its path there. */
export function sources(folder) {
  const paths = readdirSync(folder, { recursive: true }).map((path) => path.replaceAll('\\', '/'))
  return Object.fromEntries(
    paths.filter((path) => /\.tsx?$/.test(path)).map((path) => [path, readFileSync(join(folder, path), 'utf8')]),
  )
}

/** imports returns for each file the paths that it imports, types and what is loaded on demand included; packages are left out. */
export function imports(files) {
  const resolve = (from, to) => {
    const path = posix.join(dirname(from), to)
    return (
      [path, `${path}.ts`, `${path}.tsx`, `${path}/index.ts`, `${path}/index.tsx`].find(
        (candidate) => candidate in files,
      ) ?? path
    )
  }
  const ofText = (from, text) =>
    ts
      .preProcessFile(text, true, true)
      .importedFiles.filter(({ fileName }) => fileName.startsWith('.'))
      .map(({ fileName }) => resolve(from, fileName))
  return Object.fromEntries(Object.entries(files).map(([path, text]) => [path, ofText(path, text)]))
}

/** upward returns one line for each import that does not lead to a layer above, and for each folder that has no layer. */
export function upward(graph, order) {
  const folder = (path) => path.split('/')[0] ?? ''
  const layer = (path) => order.findIndex((names) => names.includes(folder(path)))
  const found = []
  for (const [from, targets] of Object.entries(graph)) {
    if (layer(from) < 0) found.push(`${from}: ${folder(from)} is in no layer of build/imports.js`)
    for (const to of targets) {
      if (folder(from) !== folder(to) && layer(from) <= layer(to))
        found.push(`${from} imports ${to}: ${folder(from)} must not import ${folder(to)}`)
    }
  }
  return found
}

/** circles returns one line for each import that leads back to a file on the way to it. */
export function circles(graph) {
  const found = []
  const done = new Set()
  const visit = (path, way) => {
    if (way.includes(path)) {
      found.push([...way.slice(way.indexOf(path)), path].join(' → '))
      return
    }
    if (done.has(path)) return
    for (const to of graph[path] ?? []) visit(to, [...way, path])
    done.add(path)
  }
  for (const path of Object.keys(graph)) visit(path, [])
  return found
}
