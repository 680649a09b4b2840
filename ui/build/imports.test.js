import { describe, expect, it } from 'vitest'
import { circles, imports, layers, sources, upward } from './imports.js'

describe('the imports of the web UI', () => {
  const graph = imports(sources(new URL('../src', import.meta.url).pathname))

  it('lead only to layers above', () => {
    expect(Object.keys(graph).length).toBeGreaterThan(200)
    expect(upward(graph, layers)).toEqual([])
  })

  it('have no circles between files', () => {
    expect(circles(graph)).toEqual([])
  })

  it('are of folders that exist', () => {
    const folders = new Set(Object.keys(graph).map((path) => path.split('/')[0]))
    expect(layers.flat().filter((name) => !folders.has(name))).toEqual([])
  })
})

describe('upward', () => {
  const check = (files) => upward(imports(files), [['kit'], ['runs', 'start'], ['shell']])

  it('finds imports of the same layer and of those below, also of types and on demand', () => {
    expect(
      check({
        'kit/Menu.tsx': "import type { Run } from '../runs'\nimport styles from './Menu.module.css'",
        'runs/index.ts': "export { Menu } from '../kit/Menu'\nexport { Start } from '../start'",
        'start/index.ts': "const page = () => import('../shell/App')",
        'shell/App.tsx': "import '../runs'\nimport 'react'",
      }),
    ).toEqual([
      'kit/Menu.tsx imports runs/index.ts: kit must not import runs',
      'runs/index.ts imports start/index.ts: runs must not import start',
      'start/index.ts imports shell/App.tsx: start must not import shell',
    ])
  })

  it('finds folders without a layer', () => {
    expect(check({ 'more/a.ts': '' })).toEqual(['more/a.ts: more is in no layer of build/imports.js'])
  })
})

describe('circles', () => {
  it('finds the way round, once', () => {
    const files = {
      'a.ts': "import './b'",
      'b.ts': "const c = () => import('./c')",
      'c.ts': "import type { B } from './b'",
    }
    expect(circles(imports(files))).toEqual(['b.ts → c.ts → b.ts'])
  })

  it('accepts two ways to one file', () => {
    expect(circles(imports({ 'a.ts': "import './b'\nimport './c'", 'b.ts': "import './c'", 'c.ts': '' }))).toEqual([])
  })
})
