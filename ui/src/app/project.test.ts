import { QueryClient } from '@tanstack/react-query'
import { beforeEach, describe, expect, it } from 'vitest'
import type { clients } from '../api'
import { setPreferences } from '../kit'
import { lastList, rememberList } from './list'
import { allProjects, firstProject } from './project'
import { workflowParams } from './workflow'

/** server answers with the names of projects, so many on each page. */
const server = (names: string[], size = 2) => {
  const asked: string[] = []
  const api = {
    projects: {
      listProjects: ({ pageToken }: { pageToken: string }) => {
        asked.push(pageToken)
        const from = Number(pageToken)
        const to = from + size
        return Promise.resolve({
          projects: names.slice(from, to).map((name) => ({ name })),
          nextPageToken: to < names.length ? String(to) : '',
        })
      },
    },
  } as unknown as typeof clients
  return { api, asked }
}

describe('the projects', () => {
  beforeEach(() => {
    setPreferences({ project: '' })
  })

  it('are read page by page', async () => {
    const { api, asked } = server(['a', 'b', 'c', 'd', 'e'])
    expect((await allProjects(api)).map((p) => p.name)).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(asked).toEqual(['', '2', '4'])
  })

  it('are not read without end', async () => {
    const { api, asked } = server(
      Array.from({ length: 5000 }, (_, i) => `p${i}`),
      200,
    )
    expect(await allProjects(api)).toHaveLength(2000)
    expect(asked).toHaveLength(10)
  })

  it('begin with the one that was used last, if it is there', async () => {
    const { api } = server(['a', 'b', 'c'])
    expect(await firstProject(new QueryClient(), api)).toBe('a')
    setPreferences({ project: 'c' })
    expect(await firstProject(new QueryClient(), api)).toBe('c')
    setPreferences({ project: 'gone' })
    expect(await firstProject(new QueryClient(), api)).toBe('a')
  })

  it('may be none', async () => {
    expect(await firstProject(new QueryClient(), server([]).api)).toBe('')
  })
})

describe('the list of runs that was shown last', () => {
  it('is that of its project', () => {
    expect(lastList('shop')).toBeUndefined()
    rememberList('shop', { search: { status: 'failed' }, ids: ['a'] })
    rememberList('other', { search: {}, ids: ['b'] })
    rememberList('shop', { search: { status: 'running' }, ids: ['c', 'd'] })
    expect(lastList('shop')).toEqual({ search: { status: 'running' }, ids: ['c', 'd'] })
    expect(lastList('other')?.ids).toEqual(['b'])
  })
})

describe('the parameters of the page of a workflow', () => {
  it.each([
    ['shop/order', { namespace: 'shop', name: 'order' }],
    ['shop/order/more', { namespace: 'shop', name: 'order/more' }],
    ['order', { namespace: '', name: 'order' }],
  ])('of %s', (workflow, expected) => {
    expect(workflowParams('p', workflow)).toEqual({ project: 'p', ...expected })
  })
})
