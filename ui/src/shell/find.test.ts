import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { SearchHitSchema } from '../gen/signalbox/v1/search_pb'
import { foundOf, headingOf, searchable } from './find'

const id = '01a21ed7-0000-4000-8000-00000000431e'
const hit = (init: Parameters<typeof create<typeof SearchHitSchema>>[1]) =>
  create(SearchHitSchema, { project: 'shop', ...init })

describe('what is searched for', () => {
  it('is what the server accepts', () => {
    expect(searchable(' order 4711 ')).toBe('order 4711')
    expect(searchable('ü2')).toBe('ü2')
    for (const text of ['', ' ', 'a', '%_', '‮', 'x'.repeat(201), 'ü'.repeat(101), 'a b c d e f g h i'])
      expect(searchable(text)).toBe('')
  })
})

describe('a hit', () => {
  it('leads to its page', () => {
    const path = (kind: string, init: Parameters<typeof hit>[0]) => foundOf(kind, hit(init), 'shop').path
    expect(path('run', { id })).toBe(`/p/shop/runs/${id}`)
    expect(path('event', { id: 'e/1', position: 12n })).toBe('/p/shop/events/12')
    expect(path('workflow', { id: 'shop/a b' })).toBe('/p/shop/workflows/shop/a%20b')
    expect(path('task', { id: '/do/0/x', workflow: 'shop/order' })).toBe('/p/shop/workflows/shop/order')
    expect(path('batch', { id })).toBe(`/p/shop/batches/${id}`)
    expect(path('delivery', { id: 'msg_1', webhook: 'orders' })).toBe('/p/shop/webhooks/orders/deliveries/msg_1')
    expect(path('project', { id: 'shop' })).toBe('/p/shop/runs')
  })

  it('shows why it matched', () => {
    const found = foundOf(
      'run',
      hit({
        id,
        workflow: 'shop/order',
        status: 'failed',
        detail: 'Refused',
        field: 'label.order',
        parts: [{ text: '47', match: true }, { text: '11' }],
      }),
      'other',
    )
    expect(found.field).toBe('order')
    expect(found.parts.map(({ text }) => text)).toEqual(['47', '11'])
    expect([found.detail, found.status, found.project]).toEqual(['Refused', 'Failed', 'shop'])
    expect(foundOf('run', hit({ id, field: 'id', parts: [{ text: id, match: true }] }), 'shop').parts).toEqual([])
  })

  it('stands below the heading of its kind', () => {
    expect(headingOf({ kind: 'run', more: true })).toBe('Runs, the newest')
    expect(headingOf({ kind: 'delivery', more: false })).toBe('Deliveries of webhooks')
  })
})
