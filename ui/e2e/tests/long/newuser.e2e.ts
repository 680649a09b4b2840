// What a person does in the first minutes: starts a run by its dialog, sees it fail, understands why, replays it with another input and
// compares both, by what the screen shows alone.
import { mkdirSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, open } from '../../browser'
import { type Platform, startPlatform } from '../../platform'

let platform: Platform
let browser: Browser

beforeAll(async () => {
  browser = await launch()
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

const folder = process.env.STEPS ?? ''
/** Takes a picture of each step into the folder STEPS, for a person to look at. */
async function step(page: Page, name: string): Promise<void> {
  if (folder === '') return
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: `${folder}/${name}.png` })
}

describe('a new user', () => {
  it('runs, breaks, understands, replays and compares within three minutes', { timeout: 180_000 }, async () => {
    const began = Date.now()
    platform = await startPlatform()
    // The address that `signalbox dev` prints leads to the list of runs, which is empty and says what to do.
    const { context, page, faults } = await open(browser, platform.address, '/')
    await page.getByText('No runs in default yet').waitFor()
    await step(page, '1-empty')
    await page.getByRole('button', { name: 'Run…' }).last().click()
    const dialog = page.getByRole('dialog')
    await step(page, '2-dialog')
    await dialog.getByLabel('Workflow').fill('shop/order')
    await dialog.getByLabel(/^order/).fill('A-1')
    await dialog.getByLabel(/^sku/).fill('gone-table')
    await dialog.getByLabel(/^base/).fill(platform.stock)
    await step(page, '3-form')
    await dialog.getByRole('button', { name: 'Run', exact: true }).click()

    // It fails, and the page says what, where and how.
    await page.getByRole('heading', { level: 1, name: 'Failed' }).waitFor()
    const failed = new URL(page.url()).pathname.split('/').pop() ?? ''
    await page.locator('[data-alert]').getByText('404 Not Found').waitFor()
    await step(page, '4-failed')
    await page.getByRole('button', { name: 'Go to step' }).click()
    await page.getByRole('tab', { name: 'Error', selected: true }).waitFor()
    await page
      .getByText(/stock\/gone-table answered 404/)
      .first()
      .waitFor()
    await step(page, '5-step')

    // The input is changed where it was wrong.
    await page.getByRole('button', { name: 'Replay…' }).click()
    await dialog.getByRole('button', { name: 'Edit', exact: true }).click()
    await dialog.locator('.cm-content').waitFor()
    const line = dialog.locator('.cm-line', { hasText: 'gone-table' })
    await line.click()
    await page.keyboard.press('Home')
    await page.keyboard.press('Shift+End')
    await page.keyboard.insertText((await line.innerText()).replace('gone-table', 'chair'))
    await dialog.getByText('1 change', { exact: true }).waitFor()
    await dialog.getByLabel('Reason').fill('the table is no longer sold')
    await step(page, '6-replay')
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Completed' }).waitFor()
    await step(page, '7-completed')

    // The new run names the one that it replays, and both are compared.
    await page.getByRole('button', { name: 'Compare…' }).click()
    await step(page, '8-compare')
    await page.getByRole('button', { name: 'Compare with it' }).click()
    await page.waitForURL((url) => url.searchParams.get('b') === failed)
    await page.getByText('first difference').waitFor()
    await page.getByRole('tab', { name: /^Input/ }).click()
    await page.getByRole('tabpanel').getByText('chair').first().waitFor()
    await step(page, '9-input')
    const seconds = (Date.now() - began) / 1000
    process.stdout.write(`From the start of the platform to the comparison: ${seconds.toFixed(1)} s\n`)
    expect(seconds).toBeLessThan(180)
    expect(faults).toEqual([])
    await context.close()
  })
})
