import { describe, expect, it, vi } from 'vitest'
import { createStore } from './store'

describe('a store', () => {
  it('notifies what follows it of each new value, after it has it', () => {
    const store = createStore('a')
    const seen: string[] = []
    store.subscribe(() => seen.push(store.get()))
    store.set('b')
    store.set('c')
    expect(seen).toEqual(['b', 'c'])
  })

  it('is silent where nothing changes', () => {
    const store = createStore(NaN)
    const listener = vi.fn()
    store.subscribe(listener)
    store.set(NaN)
    expect(listener).not.toHaveBeenCalled()
  })

  it('forgets a listener that ended, and no other', () => {
    const store = createStore(0)
    const [first, second] = [vi.fn(), vi.fn()]
    const end = store.subscribe(first)
    store.subscribe(second)
    end()
    store.set(1)
    expect(first).not.toHaveBeenCalled()
    expect(second).toHaveBeenCalledTimes(1)
  })
})
