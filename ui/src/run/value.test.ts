import { describe, expect, it } from 'vitest'
import { join } from './value'

const pages = (text: string, size: number) => (offset: bigint) => {
  const end = Number(offset) + size
  return Promise.resolve({ text: text.slice(Number(offset), end), nextOffset: end < text.length ? BigInt(end) : 0n })
}

describe('a value in pages', () => {
  it('is joined up to the last page', async () => {
    const text = JSON.stringify({ list: Array.from({ length: 500 }, (_, i) => i) })
    expect(await join(pages(text, 100))).toBe(text)
    expect(await join(pages(text, text.length))).toBe(text)
    expect(await join(pages('', 10))).toBe('')
  })

  it('is not shown in part when a page fails', async () => {
    const read = pages('0123456789', 4)
    await expect(join((offset) => (offset === 4n ? Promise.reject(new Error('away')) : read(offset)))).rejects.toThrow(
      'away',
    )
  })
})
