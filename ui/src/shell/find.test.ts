import { describe, expect, it } from 'vitest'
import { suggestions } from './find'

const id = '01a21ed7-0000-4000-8000-00000000431e'
const offered = (text: string, project = 'shop') => suggestions(text, project).map(({ value }) => value)
const lists = (text: string) => [`search ${text}`, `event ${text}`, `workflow ${text}`]
const target = (text: string, value: string) => suggestions(text, 'shop').find((s) => s.value === value)?.target

describe('what the palette offers for a text', () => {
  it('is nothing for a short one, and without a project', () => {
    expect(offered('ab')).toEqual([])
    expect(offered('  ab  ')).toEqual([])
    expect(offered('abc', '')).toEqual([])
  })

  it('is to search the lists', () => {
    expect(offered(' abc ')).toEqual(lists('abc'))
    expect(target('abc', 'search abc')).toEqual({ page: 'runs', search: { text: 'abc' } })
    expect(target('abc', 'event abc')).toEqual({ page: 'events', search: { id: 'abc' } })
    expect(target('abc', 'workflow abc')).toEqual({ page: 'workflows', search: { q: 'abc' } })
  })

  it('is to open a run or a batch by its ID first', () => {
    expect(offered(` ${id} `)).toEqual([`run ${id}`, `batch ${id}`, ...lists(id)])
    expect(target(id, `run ${id}`)).toEqual({ page: `runs/${id}` })
    expect(target(id, `batch ${id}`)).toEqual({ page: `batches/${id}` })
    expect(offered(id.toUpperCase())[0]).toBe(`run ${id.toUpperCase()}`)
  })

  it.each([id.slice(1), `${id}0`, id.replace(/-/g, '')])('is not to open a run by %s', (text) => {
    expect(offered(text)).toEqual(lists(text))
  })

  it('is to open a delivery by its ID', () => {
    expect(offered('msg_0a1b')[0]).toBe('delivery msg_0a1b')
    expect(target('msg_0a1b', 'delivery msg_0a1b')).toEqual({ delivery: 'msg_0a1b' })
    expect(offered('msg_xyz')).toEqual(lists('msg_xyz'))
  })

  it('is to find the runs with a label', () => {
    expect(target('order=A:7', 'label order=A:7')).toEqual({ page: 'runs', search: { label: 'order:A:7' } })
    expect(offered('or der=7')).toEqual(lists('or der=7'))
    expect(offered('order=')).toEqual(lists('order='))
  })
})
