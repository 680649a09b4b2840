// What the pages say while a worker, Temporal or the server is gone, and after it is back.
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, loaded, open } from '../../browser'
import { until } from '../../platform'
import { type Processes, startProcesses } from '../../processes'

let platform: Processes
let browser: Browser

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startProcesses(), launch()])
  await platform.publish()
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

const order = () => ({ order: 'A-1', items: [{ sku: 'lamp', count: 1 }], base: platform.stock })
const shortID = (id: string) => `${id.slice(0, 8)}…${id.slice(-4)}`
const row = (page: Page, id: string) =>
  page
    .getByRole('grid')
    .getByRole('row')
    .filter({ has: page.getByRole('link', { name: shortID(id) }) })
const problem = (page: Page, title: string) => page.getByRole('grid').getByRole('row').filter({ hasText: title })
const links = (page: Page) => page.getByRole('status', { name: 'Connections' })

async function tab(context: BrowserContext, path: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(platform.address + path)
  await loaded(page)
  return page
}

describe('a run without a worker', () => {
  it(
    'has no warning before 60 s, then the list, its page and Problems name the queue, until a worker starts',
    { timeout: 240_000 },
    async () => {
      const id = await platform.start('order', order())
      const { context, page, faults } = await open(browser, platform.address, `/p/default/runs/${id}`)
      const [list, problems] = [await tab(context, '/p/default/runs'), await tab(context, '/problems')]
      const began = Date.now()
      await page.getByText('Queued, waiting for a worker on signalbox-default').waitFor()
      expect(await row(list, id).getByText('No worker').count()).toBe(0)

      await page.getByText(/^No worker.* on signalbox-default/).waitFor({ timeout: 90_000 })
      expect(Date.now() - began).toBeGreaterThan(50_000)
      expect(await page.locator('[data-alert]').first().innerText()).toMatch(
        /since.*start a worker for project default/s,
      )
      await row(list, id).getByText('No worker').waitFor()
      await problem(problems, 'No worker').getByText('signalbox-default').first().waitFor()

      await platform.worker.start()
      await page.getByRole('heading', { level: 1, name: 'Completed' }).waitFor({ timeout: 60_000 })
      expect(await page.getByText('No worker').count()).toBe(0)
      await row(list, id).getByText('Completed').waitFor()
      expect(await row(list, id).getByText('No worker').count()).toBe(0)
      await problem(problems, 'No worker').waitFor({ state: 'detached' })
      expect(faults).toEqual([])
      await context.close()
    },
  )
})

describe('a worker that is killed while it executes a run', () => {
  it('is shown as gone on the page of the run, which goes on with the next worker', { timeout: 300_000 }, async () => {
    const id = await platform.start('order', {
      ...order(),
      items: Array.from({ length: 40 }, () => ({ sku: 'slow-lamp', count: 1 })),
    })
    const { context, page, faults } = await open(browser, platform.address, `/p/default/runs/${id}`)
    await page.getByRole('heading', { level: 1, name: 'Running' }).waitFor()
    await platform.worker.kill()
    await page.getByText(/^Worker gone/).waitFor({ timeout: 150_000 })
    expect(await page.locator('[data-alert]').first().innerText()).toContain('What to do')
    await platform.worker.start()
    await page.getByText(/^Worker gone/).waitFor({ state: 'detached', timeout: 60_000 })
    await page.getByRole('heading', { level: 1, name: 'Completed' }).waitFor({ timeout: 150_000 })
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('Temporal that is killed', () => {
  it(
    'is shown beside the link to the server, on the run and before a start, and is back by itself',
    { timeout: 240_000 },
    async () => {
      const id = await platform.start('wait')
      await until('the run waits', async () => (await platform.show(id)).status === 'waiting')
      const { context, page, faults } = await open(browser, platform.address, `/p/default/runs/${id}`)
      await links(page).getByText('Connected').waitFor()
      await platform.temporal.kill()
      await page
        .getByText(/^Temporal (cannot be reached|does not answer): the run goes on/)
        .waitFor({ timeout: 60_000 })
      expect(await links(page).innerText()).toMatch(/Server:\s*Live[\s\S]*Temporal:\s*Down/)
      await page.getByRole('heading', { level: 1, name: 'Waiting' }).waitFor()

      const list = await tab(context, '/p/default/runs')
      await list.getByText(/^Temporal (cannot be reached|does not answer)/).waitFor()
      await list.getByRole('button', { name: 'Run…' }).click()
      await list
        .getByRole('dialog')
        .getByText(/refused/)
        .first()
        .waitFor()

      await platform.temporal.start()
      await page
        .getByText(/^Temporal (cannot be reached|does not answer): the run goes on/)
        .waitFor({ state: 'detached', timeout: 60_000 })
      await links(page).getByText('Connected').waitFor()
      await list
        .getByText(/^Temporal (cannot be reached|does not answer)/)
        .first()
        .waitFor({ state: 'detached' }) // the page and the dialog say it
      await list
        .getByRole('dialog')
        .getByText(/Temporal.*refused/)
        .waitFor({ state: 'detached' })
      await page.getByRole('heading', { level: 1, name: 'Waiting' }).waitFor()
      expect(faults).toEqual([])
      await context.close()
    },
  )
})

describe('a server that restarts under an open replay dialog', () => {
  it(
    'leaves what was typed, and one run is made, also when the first answer was lost',
    { timeout: 240_000 },
    async () => {
      const id = await platform.start('order', order())
      await until('the run completed', async () => (await platform.show(id)).status === 'completed')
      const { context, page } = await open(browser, platform.address, `/p/default/runs/${id}`)
      await page.getByRole('button', { name: 'Replay…' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Reason').fill('the shelf was moved')
      await platform.server.kill()
      const replay = dialog.getByRole('button', { name: 'Replay', exact: true })
      await until('the button is off', async () => (await replay.getAttribute('aria-disabled')) === 'true')
      expect(await dialog.getByLabel('Reason').inputValue()).toBe('the shelf was moved')
      await platform.server.start()
      await until('the button is on', async () => (await replay.getAttribute('aria-disabled')) !== 'true', 60_000)

      // The first request reaches the server; its answer does not reach the browser.
      let calls = 0
      await page.route('**/ReplayRun', async (route) => {
        calls++
        if (calls > 1) return route.continue()
        await route.fetch()
        return route.abort('connectionreset')
      })
      await replay.click()
      await until('the call was lost', async () => calls === 1 && (await dialog.getByRole('alert').count()) > 0)
      expect(await dialog.getByLabel('Reason').inputValue()).toBe('the shelf was moved')
      await until('the button is on', async () => (await replay.getAttribute('aria-disabled')) !== 'true', 60_000)
      await replay.click()
      await page.waitForURL((url) => /\/runs\/[0-9a-f-]{36}$/.test(url.pathname) && !url.pathname.endsWith(id))
      expect(calls).toBe(2)
      const replays = (await platform.sql(`SELECT run_id FROM run_links WHERE replay_of = '${id}'`)).trim().split('\n')
      expect(replays).toEqual([new URL(page.url()).pathname.split('/').pop()])
      await context.close()
    },
  )
})
