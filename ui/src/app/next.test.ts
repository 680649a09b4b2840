import { describe, expect, it } from 'vitest'
import { localPath } from './next'

describe('the path after sign-in', () => {
  it.each(['/p/shop/runs?status=failed', '/', '/problems#x'])('goes to %s of this origin', (path) => {
    expect(localPath(path)).toBe(path)
  })

  it.each([
    '//evil.example',
    '/\\evil.example',
    'https://evil.example',
    'javascript:alert(1)',
    '',
    '/\t/evil.example',
    '/a\\b',
    '\\\\evil.example',
  ])('never goes to %j', (path) => {
    expect(localPath(path)).toBe('/')
  })
})
