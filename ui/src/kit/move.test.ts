import { describe, expect, it } from 'vitest'
import { flipped, moved, treeAction, type TreeRow } from './move'

describe('the keys of a list', () => {
  it.each([
    ['j', 4, 5],
    ['ArrowDown', 4, 5],
    ['k', 4, 3],
    ['ArrowUp', 4, 3],
    ['Home', 4, 0],
    ['End', 4, 39],
    ['PageDown', 4, 19],
    ['PageUp', 20, 5],
  ])('%s leads from row %d to row %d', (key, at, to) => {
    expect(moved(key, at, 40)).toBe(to)
  })

  it.each([
    ['k', 0, 0],
    ['j', 39, 39],
    ['PageUp', 3, 0],
    ['PageDown', 30, 39],
  ])('%s stays within the list: from %d to %d', (key, at, to) => {
    expect(moved(key, at, 40)).toBe(to)
  })

  it('begin at the first row where none has the keyboard', () => {
    expect(moved('j', -1, 3)).toBe(0)
    expect(moved('k', -1, 3)).toBe(0)
  })

  it.each(['x', 'Enter', ' ', 'J', 'constructor', 'ArrowLeft'])('do not include %j', (key) => {
    expect(moved(key, 1, 3)).toBeUndefined()
  })
})

describe('the keys of a tree', () => {
  const row = (depth: number, state: 'open' | 'closed' | 'leaf'): TreeRow => ({
    depth,
    branch: state !== 'leaf',
    open: state === 'open',
  })
  const rows = [row(0, 'open'), row(1, 'leaf'), row(1, 'open'), row(2, 'leaf'), row(2, 'closed'), row(0, 'leaf')]
  const act = (key: string, at: number) => {
    const action = treeAction(key, rows, at)
    return action?.kind === 'move' ? action.to : action?.kind
  }

  it('open a closed row to the right, and go on from an open one or a leaf', () => {
    expect(act('ArrowRight', 4)).toBe('toggle')
    expect(act('ArrowRight', 2)).toBe(3)
    expect(act('ArrowRight', 1)).toBe(2)
    expect(act('ArrowRight', 5)).toBe(5)
  })

  it('close an open row to the left, and go up from a closed one or a leaf', () => {
    expect(act('ArrowLeft', 2)).toBe('toggle')
    expect(act('ArrowLeft', 4)).toBe(2)
    expect(act('ArrowLeft', 3)).toBe(2)
    expect(act('ArrowLeft', 1)).toBe(0)
    expect(act('ArrowLeft', 5)).toBe(5)
  })

  it('activate a row, and move as in a list', () => {
    expect(act('Enter', 1)).toBe('activate')
    expect(act(' ', 2)).toBe('activate')
    expect(act('j', 1)).toBe(2)
    expect(act('End', 0)).toBe(5)
  })

  it('do nothing where there is no row, and for other keys', () => {
    expect(treeAction('Enter', [], 0)).toBeUndefined()
    expect(act('x', 0)).toBeUndefined()
  })
})

describe('a set with a key flipped', () => {
  it('has it, or has it no more, and the first set stays', () => {
    const before = new Set(['a'])
    expect([...flipped(before, 'b')]).toEqual(['a', 'b'])
    expect([...flipped(before, 'a')]).toEqual([])
    expect([...before]).toEqual(['a'])
  })
})
