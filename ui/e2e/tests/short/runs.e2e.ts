import { fromBinary } from '@bufbuild/protobuf'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ReplayRunRequestSchema } from '../../../src/gen/signalbox/v1/run_pb'
import { launch, loaded, open, violations } from '../../browser'
import { here, type Platform, seed, startPlatform, until } from '../../platform'

let platform: Platform
let browser: Browser
let ids: Record<string, string>

interface Run {
  id: string
  status: string
  replayOf?: string
  input?: unknown
}

const show = async (id: string): Promise<Run> => JSON.parse(await platform.cli('run', 'show', id, '-o', 'json')) as Run

/** The input of a run without marks, as an administrator may read it. */
const original = async (id: string): Promise<string> => {
  const answer = await fetch(`${platform.address}/v1/projects/default/runs/${id}?unredacted=true`)
  return JSON.stringify(((await answer.json()) as { run: Run }).run.input)
}

/** The ID of the run whose page is open, once it is another one. */
const openedRun = async (page: Page, not: string): Promise<string> => {
  await page.waitForURL((url) => /\/runs\/[0-9a-f-]{36}/.test(url.pathname) && !url.pathname.includes(not))
  await loaded(page)
  return /runs\/([0-9a-f-]{36})/.exec(page.url())?.[1] ?? ''
}

/** The rows of the list of the page with these words. */
const rows = (page: Page, words: RegExp) => page.getByRole('grid').getByRole('row', { name: words })

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startPlatform(), launch()])
  ids = await seed(platform)
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

describe('a run', () => {
  it('is started by the dialog and shown to its end', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/p/default/workflows/shop/parallel')
    await page.getByRole('button', { name: 'Run…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Run', exact: true }).click()
    const id = await openedRun(page, 'none')
    await page.getByRole('heading', { level: 1, name: 'Completed' }).waitFor()
    expect((await show(id)).status).toBe('completed')
    expect(faults).toEqual([])
    await context.close()
  })

  it('that is refused for its input stays in the dialog with the reason at the field', async () => {
    const { context, page } = await open(browser, platform.address, '/p/default/workflows/shop/order')
    await page.getByRole('button', { name: 'Run…' }).click()
    const dialog = page.getByRole('dialog')
    // The first field has the keyboard; after a refusal it is the first that is wrong, and each error is there once.
    await until('the first field is focused', async () =>
      dialog.getByLabel('order').evaluate((field) => field === document.activeElement),
    )
    await dialog.getByLabel('order').fill('A-1')
    await dialog.getByRole('button', { name: 'Run', exact: true }).click()
    await dialog.getByRole('alert').first().waitFor()
    await until('the first wrong field is focused', async () =>
      dialog.getByLabel('sku').evaluate((field) => field === document.activeElement),
    )
    expect(await dialog.getByRole('alert').allInnerTexts()).toEqual(['Required'])
    await dialog.getByLabel('sku').fill('lamp')
    expect(await dialog.getByRole('alert').count()).toBe(0)
    expect(page.url()).toContain('/workflows/shop/order')
    await context.close()
  })

  it('is replayed unedited with its original input, the sealed value included', async () => {
    const failed = ids.failed ?? ''
    const { context, page } = await open(browser, platform.address, `/p/default/runs/${failed}`)
    const sent: Buffer[] = []
    page.on('request', (request) => {
      const body = request.postDataBuffer() ?? Buffer.alloc(0)
      // Dry runs check the dialog; they replay nothing.
      if (request.url().endsWith('/ReplayRun') && !fromBinary(ReplayRunRequestSchema, body).dryRun) sent.push(body)
    })
    await page.getByRole('button', { name: 'Replay…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill('the table is back')
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click()
    const id = await openedRun(page, failed)
    // Neither an input nor a patch is sent: the message has only the project, the run, the reason and the request ID.
    expect(sent.length).toBe(1)
    expect(sent[0]?.toString('latin1')).not.toContain('lamp')
    expect((await show(id)).replayOf).toBe(failed)
    expect(await original(failed)).toContain('secret-word')
    expect(await original(id)).toBe(await original(failed))
    await context.close()
  })

  it('is canceled, and says so without being loaded again', async () => {
    const id = await platform.start('wait')
    await until('the run waits', async () => (await show(id)).status === 'waiting')
    const { context, page } = await open(browser, platform.address, `/p/default/runs/${id}`)
    await page.getByRole('button', { name: 'Cancel…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill('not needed')
    await dialog.getByRole('button', { name: /^(Cancel|Request cancel|Cancel the run)$/ }).click()
    await page.getByRole('heading', { level: 1, name: 'Canceled' }).waitFor()
    await context.close()
  })

  it('that waits ten minutes has no warning, also when the browser’s clock is an hour ahead', async () => {
    const { context, page } = await open(browser, platform.address, '/system')
    await page.clock.install({ time: Date.now() + 3_600_000 })
    await page.goto(`${platform.address}/p/default/runs/${ids.waiting ?? ''}`)
    await loaded(page)
    await page.getByRole('heading', { level: 1, name: 'Waiting' }).waitFor()
    // It says until when the run waits, by the server's clock, and warns of nothing.
    const alerts = (await page.locator('[data-alert]').allInnerTexts()).join(' ')
    expect(alerts).toMatch(/Due in [1-9]:\d\d/)
    expect(alerts).not.toMatch(/No worker|Queued|stuck/i)
    await context.close()
  })
})

describe('the list of runs', () => {
  it('keeps its filter in the URL and returns to it', async () => {
    const { context, page } = await open(browser, platform.address, '/p/default/runs?status=failed')
    await rows(page, /Failed/)
      .first()
      .waitFor()
    expect(await rows(page, /Completed/).count()).toBe(0)
    await rows(page, /Failed/)
      .first()
      .getByRole('link')
      .first()
      .click()
    await openedRun(page, 'none')
    await page.goBack()
    await page.waitForURL(/status=failed/)
    await context.close()
  })

  it('shows a new run without being loaded again', async () => {
    const { context, page } = await open(browser, platform.address, '/p/default/runs')
    const id = await platform.start('parallel')
    await page
      .getByRole('link', { name: `${id.slice(0, 8)}…${id.slice(-4)}` })
      .or(page.getByRole('button', { name: /new runs?/ }))
      .first()
      .waitFor({ timeout: 15_000 })
    await context.close()
  })
})

describe('a batch', () => {
  it('replays all failed runs that match, after it said how many', async () => {
    const { context, page } = await open(
      browser,
      platform.address,
      '/p/default/runs?status=failed&workflow=shop/order&version=1.0.0',
    )
    await rows(page, /Failed/)
      .first()
      .getByRole('checkbox')
      .check()
    await page
      .getByRole('button', { name: /^Replay/ })
      .first()
      .click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('radio', { name: /All/ }).check()
    await dialog.getByText(/runs? allow/).waitFor()
    await dialog.getByLabel('Reason').fill('the service is back')
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click()
    await page.waitForURL(/\/batches\/[0-9a-f-]{36}/)
    // The rows keep their place while the pointer is among them.
    await page.getByRole('heading', { level: 1 }).hover()
    await page
      .getByRole('row', { name: /Started/ })
      .nth(2)
      .waitFor({ timeout: 30_000 })
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page
      .getByText(/^(Completed|Failures)$/)
      .first()
      .waitFor({ timeout: 30_000 })
    await context.close()
  })
})

describe('a problem', () => {
  it('is acknowledged, and then listed as such', async () => {
    const { context, page } = await open(browser, platform.address, '/problems')
    const row = page.getByRole('row', { name: /Not Found/ })
    await row.getByRole('button', { name: 'Acknowledge' }).click()
    await page.getByRole('tab', { name: /Acknowledged/ }).hover()
    await row.waitFor({ state: 'detached' })
    await page.getByRole('tab', { name: /Acknowledged/ }).click()
    await row.waitFor()
    expect(await platform.cli('problem', 'list', '--state', 'acknowledged')).toContain('Not Found')
    await context.close()
  })
})

describe('a lost connection', () => {
  it('is shown, turns controls off, and is over by itself', async () => {
    const { context, page } = await open(browser, platform.address, '/p/default/workflows/shop/order')
    await context.setOffline(true)
    await page.getByText('No connection to the server').first().waitFor({ timeout: 30_000 })
    expect(await page.getByRole('button', { name: 'Pause…' }).getAttribute('aria-disabled')).toBe('true')
    await context.setOffline(false)
    await page.getByText('No connection to the server').first().waitFor({ state: 'detached', timeout: 30_000 })
    await context.close()
  })
})

describe('what happened around the runs', () => {
  it('is on the histogram: a publication as a mark, in words, and in a list for the keyboard', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/p/default/runs')
    const chart = page.getByRole('application', { name: /Runs by the time/ })
    await chart.locator('[title*="shop/order 1.0.0 was published"]').first().waitFor()
    await chart.focus()
    await page.keyboard.press('ArrowLeft')
    await page
      .getByRole('status')
      .getByText(/shop\/order 1\.0\.0 was published/)
      .waitFor()
    expect(await violations(page)).toEqual([])
    await page.keyboard.press('Tab')
    expect(await page.evaluate(() => document.activeElement?.textContent)).toMatch(/\d+ publications/)
    await page.keyboard.press('Enter')
    const item = page
      .getByRole('dialog', { name: 'What happened around the runs' })
      .getByRole('listitem')
      .filter({ hasText: 'shop/order 1.0.0 was published' })
    expect(await item.innerText()).toMatch(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/)
    expect(await violations(page)).toEqual([])
    await item.getByRole('link').press('Enter')
    await page.waitForURL(/\/workflows\/shop\/order/)
    expect(faults).toEqual([])
    await context.close()
  })

  it('is on the timeline of a run: a publication of its workflow, not of others', async () => {
    const id = await platform.start('wait')
    const folder = mkdtempSync(join(tmpdir(), 'workflows-'))
    for (const name of ['wait', 'parallel']) {
      const file = join(folder, `${name}.yaml`)
      writeFileSync(
        file,
        readFileSync(join(here, 'workflows', `${name}.yaml`), 'utf8').replace("version: '1.0.0'", "version: '1.1.0'"),
      )
      await platform.cli('workflow', 'publish', file)
    }
    rmSync(folder, { recursive: true })
    const { context, page, faults } = await open(browser, platform.address, `/p/default/runs/${id}?tab=timeline`)
    await page.getByRole('button', { name: '1 publication' }).click()
    await page.getByRole('listitem').getByText('shop/wait 1.1.0 was published').waitFor()
    await page
      .getByRole('group', { name: 'Timeline' })
      .locator('[title*="shop/wait 1.1.0 was published"]')
      .first()
      .waitFor()
    expect(await violations(page)).toEqual([])
    expect(faults).toEqual([])
    await context.close()
  })
})
