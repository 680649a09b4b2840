import { expect, it, vi } from 'vitest'
import { newRequestID } from './requestid'

it('a request ID is random, also on a page without TLS', () => {
  vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) })
  const ids = Array.from({ length: 100 }, newRequestID)
  vi.unstubAllGlobals()
  expect(new Set(ids).size).toBe(100)
  for (const id of ids) expect(id).toMatch(/^studio-[0-9a-f]{32}$/)
})
