import { describe, expect, it } from 'vitest'
import { cardLines, gridTemplate, leastWidth } from './columns'

describe('the widths of columns', () => {
  it('are fixed, or share what is left by the width of their content', () => {
    expect(gridTemplate([{ width: 80 }, { width: 100, grow: true }, { width: 60, grow: 2 }], [70, 240, 90])).toBe(
      '80px minmax(100px, 240fr) minmax(60px, 180fr)',
    )
  })

  it('share by their least width while the content is not measured', () => {
    expect(
      gridTemplate(
        [
          { width: 100, grow: true },
          { width: 60, grow: 2 },
        ],
        [],
      ),
    ).toBe('minmax(100px, 100fr) minmax(60px, 120fr)')
  })

  it('with gaps and padding are the least width of the table', () => {
    expect(leastWidth([{ width: 80 }])).toBe(104)
    expect(leastWidth([{ width: 80 }, { width: 100 }, { width: 20 }])).toBe(240)
  })
})

describe('the lines of a card', () => {
  it.each([
    [2, 1],
    [3, 2],
    [4, 2],
    [5, 3],
    [9, 5],
  ])('with %d columns are %d', (columns, lines) => {
    expect(cardLines(columns)).toBe(lines)
  })
})
