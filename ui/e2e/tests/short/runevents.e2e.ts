import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, open, violations } from '../../browser'
import { type Platform, seed, startPlatform, until } from '../../platform'

let platform: Platform
let browser: Browser
let ids: Record<string, string>

interface Run {
  id: string
  status: string
}

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startPlatform(), launch()])
  ids = await seed(platform)
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

describe('the events of a run', () => {
  it('are the one that started it, with a link to it', async () => {
    const started = async () =>
      JSON.parse(await platform.cli('run', 'list', '--trigger', 'event', '-o', 'json')) as Run[]
    await until('the event started a run', async () => (await started()).length > 0)
    const id = (await started())[0]?.id ?? ''
    const { context, page, faults } = await open(browser, platform.address, `/p/default/runs/${id}?tab=events`)
    const row = page.getByRole('grid').getByRole('row', { name: /com\.example\.placed/ })
    await row.getByText('started the run').waitFor()
    expect(await violations(page)).toEqual([])
    await row.getByRole('link').first().click()
    await page.waitForURL(/\/events\/\d+$/)
    await page.getByRole('link', { name: `${id.slice(0, 8)}…${id.slice(-4)}` }).waitFor()
    expect(faults).toEqual([])
    await context.close()
  })

  it('that it has not taken are on the tab of its waits and on their own pages, with the reason', async () => {
    const source = `/shop/${'x'.repeat(200)}`
    await platform.cli(
      'event',
      'send',
      '--type',
      'com.example.payment',
      '--source',
      source,
      '--id',
      'of-another-order',
      '--data',
      '{"order": "of another run"}',
    )
    const { context, page, faults } = await open(
      browser,
      platform.address,
      `/p/default/runs/${ids.listening ?? ''}?tab=waits`,
    )
    await page
      .getByRole('listitem')
      .filter({ hasText: 'its correlation key order is "of another run"' })
      .getByRole('link', { name: 'event of-another-order' })
      .click()
    await page.waitForURL(/\/events\/\d+$/)
    await page.getByRole('cell', { name: /its correlation key order is "of another run", the task requires/ }).waitFor()
    expect(
      await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth),
    ).toBe(true)
    expect(await violations(page)).toEqual([])
    expect(faults).toEqual([])
    await context.close()
  })

  it('that none started say so', async () => {
    const { context, page } = await open(browser, platform.address, `/p/default/runs/${ids.completed ?? ''}?tab=events`)
    await page.getByText('No event started or woke this run.').waitFor()
    await context.close()
  })
})
