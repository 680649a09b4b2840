import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, loaded, open, violations } from '../../browser'
import { type Platform, seedFunctions, startPlatform, until } from '../../platform'

let platform: Platform
let browser: Browser

const status = async (id: string): Promise<string> =>
  (JSON.parse(await platform.cli('run', 'show', id, '-o', 'json')) as { status: string }).status

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startPlatform(), launch()])
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

describe('a workflow', () => {
  it('is stopped after the dialog showed what that touches', async () => {
    const ids = [await platform.start('wait'), await platform.start('wait')]
    for (const id of ids) await until('the run waits', async () => (await status(id)) === 'waiting')
    const { context, page, faults } = await open(browser, platform.address, '/p/default/workflows/shop/wait')
    await page.getByRole('button', { name: 'Stop…' }).click()
    const dialog = page.getByRole('dialog')
    const touched = dialog.getByRole('list', { name: 'What it would do now' })
    await touched.getByText('Open runs: 2 waiting.').waitFor()
    expect(await violations(page)).toEqual([])

    // A run that starts while the dialog is open is shown before anything is changed.
    const late = await platform.start('wait')
    await until('the run waits', async () => (await status(late)) === 'waiting')
    await dialog.getByLabel('Reason').fill('wrong prices')
    await dialog.getByRole('button', { name: 'Stop', exact: true }).click()
    await dialog.getByText('BATCH_TOTAL_CHANGED').waitFor()
    await touched.getByText('Open runs: 3 waiting.').waitFor()
    expect(await status(late)).toBe('waiting')
    expect(await dialog.getByLabel('Reason').inputValue()).toBe('wrong prices')

    await dialog.getByRole('button', { name: 'Stop', exact: true }).click()
    await dialog.getByText('3 open runs are being canceled.').waitFor()
    for (const id of [...ids, late]) await until('the run is canceled', async () => (await status(id)) === 'canceled')
    await dialog.getByRole('link', { name: 'Show the batch' }).click()
    await page.waitForURL(/\/batches\/[0-9a-f-]{36}/)
    await loaded(page)
    expect(await platform.cli('workflow', 'show', 'wait')).toContain('wrong prices')
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('a schedule', () => {
  it('is changed and fired at past times beside its document', async () => {
    const { context, page, faults } = await open(
      browser,
      platform.address,
      '/p/default/workflows/shop/hourly?tab=triggers',
    )
    await page.getByText('No fire is missing among the newest 1,000 due times', { exact: false }).waitFor()
    await page.getByRole('button', { name: 'Settings…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Time zone').fill('Europe/Nowhere')
    await dialog.getByLabel('Overlap').selectOption('allow')
    await dialog.getByLabel('Jitter').fill('soon')
    await dialog.getByText('Write it like 30s or 2h.').waitFor()
    await dialog.getByLabel('Jitter').fill('30s')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('is not a name of the IANA database', { exact: false }).first().waitFor()
    await dialog.getByLabel('Time zone').fill('Europe/Berlin')
    await dialog.getByLabel('Paused until (UTC)').fill('2099-01-02T06:00')
    expect(await violations(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByText('time zone, overlap, jitter, pause').waitFor()
    await page.getByText('The schedule is paused', { exact: false }).waitFor()
    expect(await platform.cli('workflow', 'show', 'hourly')).toContain('(Europe/Berlin)')

    await page.getByRole('button', { name: 'Settings…' }).click()
    await dialog.getByLabel('Paused until (UTC)').fill('')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Backfill…' }).click()
    await dialog.getByLabel('From (UTC)').fill('2026-11-20T01:00')
    await dialog.getByLabel('To (UTC)').fill('2026-11-20T03:00')
    await dialog.getByRole('row').nth(3).waitFor()
    for (const width of [390, 1280, 1920]) {
      await page.setViewportSize({ width, height: 900 })
      expect(await page.evaluate(() => document.documentElement.scrollWidth), `at ${String(width)}`).toBe(width)
    }
    expect(await violations(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Fire at 3 due times' }).click()
    await dialog.waitFor({ state: 'detached' })
    await until('three runs have started', async () => {
      const runs = await platform.cli('run', 'list', '--workflow', 'hourly', '-o', 'json')
      return (JSON.parse(runs) as unknown[]).length >= 3
    })
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('a function', () => {
  it('is found from the workflows, with its versions, source, schemas and callers, and deleted', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/p/default/workflows')
    await page.getByRole('link', { name: 'Functions', exact: true }).click()
    await page.getByText('No functions in default yet.').waitFor()
    await page.getByText('signalbox function publish NAME:VERSION FILE --project default').waitFor()
    await seedFunctions(platform)
    await page.reload()

    const row = page.getByRole('row', { name: /^price 1\.1\.0/ })
    await row.waitFor()
    expect(await page.getByRole('rowgroup').getByRole('row').count()).toBe(2)
    await row.getByRole('link').click()
    await page.getByText('price:1.1.0@default').first().waitFor()
    await page.getByText('No published workflow calls it.').waitFor()

    await page.getByRole('tab', { name: 'Versions' }).click()
    await page.getByRole('link', { name: '1.0.0' }).click()
    await page.getByText('version 1.0.0').waitFor()
    const caller = page.getByRole('row', { name: /quote-with-a-name/ })
    await caller.getByRole('cell', { name: 'yes' }).waitFor()
    await page.getByText('minLength').waitFor()
    await page.getByRole('tab', { name: 'Source' }).click()
    await page.getByText('# The price of an order.').waitFor()

    for (const width of [390, 1280, 1920]) {
      await page.setViewportSize({ width, height: 900 })
      for (const tab of ['Overview', 'Source', 'Versions']) {
        await page.getByRole('tab', { name: tab }).click()
        await loaded(page)
        expect(await page.evaluate(() => document.documentElement.scrollWidth), `${tab} at ${width}`).toBe(width)
      }
    }
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.getByRole('button', { name: 'More', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Delete all versions…' }).click()
    expect(await violations(page)).toEqual([])
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.waitForURL(/\/functions$/)
    await page.getByRole('row', { name: /^a-function-with/ }).waitFor()
    await page.mouse.move(1, 1) // the list keeps its rows while the pointer is in it
    await row.waitFor({ state: 'detached' })
    expect(await platform.cli('function', 'list')).not.toContain('price')
    expect(faults).toEqual([])
    await context.close()
  })
})
