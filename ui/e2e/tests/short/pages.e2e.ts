import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, open, violations } from '../../browser'
import { pages } from '../../pages'
import { type Platform, seed, startPlatform } from '../../platform'

let platform: Platform
let browser: Browser
let ids: Record<string, string>

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startPlatform(), launch()])
  ids = await seed(platform)
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

describe.each(['light', 'dark'] as const)('in the %s theme', (theme) => {
  it.each(Object.keys(pages({})))('page %s loads, keeps the policy and the rules of accessibility', async (name) => {
    const { context, page, faults } = await open(browser, platform.address, pages(ids)[name] ?? '', { theme })
    expect(await violations(page)).toEqual([])
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('on a phone', () => {
  it.each(Object.keys(pages({})))('page %s is not wider than the screen', async (name) => {
    const { context, page, faults } = await open(browser, platform.address, pages(ids)[name] ?? '', { width: 390, height: 844 })
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('the server', () => {
  it('answers pages with a policy without unsafe-inline and unsafe-eval, in frames of no other site', async () => {
    const answer = await fetch(platform.address, { headers: { accept: 'text/html' } })
    const policy = answer.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
  })

  it('refuses requests from pages of other sites while every caller is an administrator', async () => {
    const path = `${platform.address}/v1/projects/default/runs/${ids.waiting ?? ''}:cancel`
    const answer = await fetch(path, { method: 'POST', headers: { origin: 'http://evil.example', 'content-type': 'application/json' }, body: '{"reason":"x"}' })
    expect(answer.status).toBe(403)
  })
})
