import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, newContext, open, openIn, violations } from '../../browser'
import { overlays, pages } from '../../pages'
import { type Platform, seed, startPlatform } from '../../platform'

let platform: Platform
let browser: Browser
let shared: BrowserContext
let ids: Record<string, string>

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startPlatform(), launch()])
  ;[ids, shared] = await Promise.all([seed(platform), newContext(browser)])
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

/** inBothThemes requires that a page keeps the rules of accessibility. A theme changes colours alone. */
async function inBothThemes(page: Page): Promise<void> {
  expect(await violations(page)).toEqual([])
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark')
  expect(await violations(page, ['color-contrast'])).toEqual([])
}

describe('in both themes', () => {
  it.each(Object.keys(pages({})))(
    'page %s loads, keeps the policy and the rules of accessibility, and fits a phone',
    async (name) => {
      const { page, faults } = await openIn(shared, platform.address, pages(ids)[name] ?? '')
      // All columns are in sight.
      expect(
        await page.evaluate(() =>
          [...document.querySelectorAll('[role=grid]')]
            .map((grid) => grid.scrollWidth - grid.clientWidth)
            .filter((more) => more > 0),
        ),
      ).toEqual([])
      await inBothThemes(page)
      await page.setViewportSize({ width: 390, height: 844 })
      const width = page.evaluate(
        async () =>
          new Promise<number>((resolve) => {
            requestAnimationFrame(() =>
              requestAnimationFrame(() => {
                resolve(document.documentElement.scrollWidth)
              }),
            )
          }),
      )
      expect(await width).toBeLessThanOrEqual(390)
      expect(faults).toEqual([])
      await page.close()
    },
  )

  it.each(Object.keys(overlays))('%s over a page keeps the policy and the rules of accessibility', async (name) => {
    const [at, show] = overlays[name] ?? ['', async () => Promise.resolve()]
    const { page, faults } = await openIn(shared, platform.address, pages(ids)[at] ?? '')
    await show(page)
    await page.locator('[role=dialog], [role=menu]').first().waitFor()
    await inBothThemes(page)
    expect(faults).toEqual([])
    await page.close()
  })
})

describe('on a phone, a row is a card', () => {
  it.each([
    ['runs', '/p/default/runs?status=failed', /Failed shop\/order .* ago .*404 Not Found/, 88],
    ['problems', '/problems', /Failure Not Found .* ago shop\/order .*count \d/, 64],
  ])('of %s, with all that matters in sight', async (_, path, words, height) => {
    const { context, page, faults } = await open(browser, platform.address, path, { width: 390, height: 844 })
    const row = page.getByRole('grid').getByRole('row', { name: words }).first()
    await row.waitFor()
    expect((await row.boundingBox())?.height).toBe(height)
    expect(await page.getByRole('grid').evaluate((grid) => grid.scrollWidth - grid.clientWidth)).toBe(0)
    expect(await violations(page)).toEqual([])
    await row
      .getByRole('gridcell')
      .getByText(/Failed|Failure/)
      .first()
      .click()
    await page.waitForURL((url) => /\/runs\/[0-9a-f-]{36}$/.test(url.pathname) || url.searchParams.has('id'))
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('the cards of runs', () => {
  it('have a line for labels only where a run has some', async () => {
    const { context, page } = await open(browser, platform.address, '/p/default/runs', { width: 390, height: 844 })
    const card = (words: RegExp) => page.getByRole('grid').getByRole('row').filter({ hasText: words }).first()
    await card(/order=A-/).waitFor()
    expect((await card(/order=A-/).boundingBox())?.height).toBe(88)
    expect((await card(/shop\/wait/).boundingBox())?.height).toBe(64)
    const boxes = await page
      .getByRole('grid')
      .locator('[role=rowgroup] [role=row]')
      .evaluateAll((all) =>
        all.map((row) => ({ top: row.getBoundingClientRect().top, bottom: row.getBoundingClientRect().bottom })),
      )
    boxes.sort((a, b) => a.top - b.top)
    expect(boxes.slice(1).map(({ top }, i) => Math.round(top - (boxes[i]?.bottom ?? 0)))).toEqual(
      boxes.slice(1).map(() => 0),
    )
    await context.close()
  })

  it('show what was chosen, on this phone from then on', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/p/default/runs?status=failed', {
      width: 390,
      height: 844,
    })
    const row = page
      .getByRole('grid')
      .getByRole('row')
      .filter({ hasText: /order=A-/ })
      .first()
    await row.waitFor()
    await page.getByRole('button', { name: 'Columns' }).click()
    expect(await violations(page)).toEqual([])
    await page.getByRole('checkbox', { name: 'Labels' }).uncheck()
    await page.getByRole('checkbox', { name: 'Duration' }).check()
    await page.keyboard.press('Escape')
    await page.reload()
    const changed = page
      .getByRole('grid')
      .getByRole('row')
      .filter({ hasText: /Duration/ })
      .first()
    await changed.waitFor()
    expect(await changed.textContent()).not.toContain('order=')
    expect((await changed.boundingBox())?.height).toBe(88)
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
    const answer = await fetch(path, {
      method: 'POST',
      headers: { origin: 'http://evil.example', 'content-type': 'application/json' },
      body: '{"reason":"x"}',
    })
    expect(answer.status).toBe(403)
  })
})
