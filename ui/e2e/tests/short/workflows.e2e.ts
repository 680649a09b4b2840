import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, loaded, open, violations } from '../../browser'
import { type Platform, startPlatform, until } from '../../platform'

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
