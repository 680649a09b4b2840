import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { isOfProject, pathInProject, pathOf, places, placesOf, sections } from './pages'

const names = (list: { name: string }[]) => list.map(({ name }) => name)

describe('the pages', () => {
  it('have routes', () => {
    const router = readFileSync(new URL('./router.tsx', import.meta.url), 'utf8')
    for (const place of places)
      expect(router, place.name).toMatch(
        new RegExp(isOfProject(place) ? `page\\('/${place.path}'` : `top\\('${place.path}'`),
      )
  })

  it('have keys that are apart', () => {
    const keys = places.map(({ key }) => key).filter((key) => key !== '')
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('of a project are not there without one', () => {
    expect(placesOf('').some(isOfProject)).toBe(false)
    expect(names(placesOf('shop'))).toEqual(names([...places]))
  })

  it('have the project in their path, as one part of it', () => {
    const path = (name: string, project: string) => {
      const place = places.find((p) => p.name === name)
      return place === undefined ? undefined : pathOf(place, project)
    }
    expect(path('Runs', 'a/b c')).toBe('/p/a%2Fb%20c/runs')
    expect(path('Workers', 'a/b c')).toBe('/workers')
  })
})

describe('the navigation', () => {
  it('begins with the problems, then the project, then the installation', () => {
    const { daily, installation } = sections('shop')
    expect(names(daily)).toEqual(['Problems', 'Runs', 'Workflows', 'Events', 'Webhooks', 'Batches', 'Audit'])
    expect(names(installation)).toEqual(['Dispatchers', 'Workers', 'System', 'Projects', 'Access'])
  })

  it('has no page of a project without one', () => {
    expect(names(sections('').daily)).toEqual(['Problems'])
    expect(names(sections('').installation)).toHaveLength(5)
  })
})

describe('another project', () => {
  it.each([
    ['/p/shop/events', '/p/new/events'],
    ['/p/shop/runs/r1', '/p/new/runs'],
    ['/p/a%2Fb/webhooks/w', '/p/new/webhooks'],
    ['/p/shop', '/p/new/runs'],
    ['/system/restore', '/p/new/runs'],
    ['/', '/p/new/runs'],
  ])('is shown from %s at %s', (from, to) => {
    expect(pathInProject(from, 'new')).toBe(to)
  })

  it('has its name as one part of the path', () => {
    expect(pathInProject('/p/shop/audit', 'a/b')).toBe('/p/a%2Fb/audit')
  })
})
