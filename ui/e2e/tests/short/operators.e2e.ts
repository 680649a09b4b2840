// What two operators do to each other's pages, what a list does while runs change, and the whole path by the keyboard.
import type { Browser, BrowserContext, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, open } from '../../browser'
import { type Platform, seed, startPlatform, until } from '../../platform'

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

interface Shown {
  id: string
  status: string
  cancelRequested: boolean
  replayOf?: string
}
const show = async (id: string) => JSON.parse(await platform.cli('run', 'show', id, '-o', 'json')) as Shown

const waiting = async () => {
  const id = await platform.start('wait')
  await until('the run waits', async () => (await show(id)).status === 'waiting')
  return id
}

/** calls counts the calls of a method that the page sends from now on. */
function calls(page: Page, method: string): { count: number } {
  const seen = { count: 0 }
  page.on('request', (request) => {
    if (request.url().endsWith(`/${method}`)) seen.count++
  })
  return seen
}

/**
 * atOnce is how many requests were under way together with one that has ended, in the middle of it. A tab aborts its read and then lets
 * another tab read, and the browser ends the aborted request a moment after the other's beginning, so their ends and beginnings do not tell.
 */
function atOnce(sent: Request[], opened: Set<Request>): number {
  const spans = sent.map((request) => {
    const { startTime, responseEnd } = request.timing()
    return { begin: startTime, end: opened.has(request) ? Infinity : startTime + responseEnd }
  })
  const middles = spans.filter(({ end }) => end !== Infinity).map(({ begin, end }) => (begin + end) / 2)
  return Math.max(...middles.map((at) => spans.filter(({ begin, end }) => begin <= at && at < end).length))
}

const ID = /\/runs\/([0-9a-f-]{36})/
const openedID = (page: Page) => ID.exec(page.url())?.[1] ?? ''
const anotherRun = async (page: Page, not: string) => {
  await page.waitForURL((url) => ID.test(url.pathname) && !url.pathname.includes(not))
}

describe('many tabs of one browser', () => {
  it('stream in four of them, and of the others one reads at a time', async () => {
    const id = await waiting()
    const { context, page } = await open(browser, platform.address, '/system')
    const opened = new Set<Request>()
    let sent: Request[] = []
    context.on('request', (request) => {
      if (!request.url().endsWith('/WatchRun')) return
      opened.add(request)
      sent.push(request)
    })
    context.on('requestfinished', (request) => {
      opened.delete(request)
    })
    context.on('requestfailed', (request) => {
      opened.delete(request)
    })
    const tabs = [page, ...(await Promise.all(Array.from({ length: 7 }, () => context.newPage())))]
    for (const tab of tabs) await tab.goto(`${platform.address}/p/default/runs/${id}`)
    await until('all have opened a stream or read', async () => Promise.resolve(sent.length >= 8))
    // The tabs that wait for their next read try at once, all together, when the browser is online again.
    await context.setOffline(true)
    await until('four stream and the others wait', async () => Promise.resolve(opened.size === 4))
    sent = [...opened]
    await context.setOffline(false)
    await until('two have read', async () =>
      Promise.resolve(sent.filter((request) => !opened.has(request)).length >= 2),
    )
    // On a slow machine, the ends that the browser reports may be late by more than half of a read. Without turns it would be all eight.
    expect(atOnce(sent, opened)).toBeLessThanOrEqual(6)
    await platform.cli('run', 'cancel', id, '--reason', 'a test')
    for (const tab of tabs) await tab.getByRole('heading', { level: 1, name: 'Canceled' }).waitFor()
    await context.close()
  })
})

describe('maintenance', () => {
  it('is begun on the page of the system, shown on every page, refuses runs with its reason, and is ended', async () => {
    const { context, page } = await open(browser, platform.address, '/system')
    await page.getByRole('button', { name: 'Begin maintenance…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Begin maintenance' }).click()
    await dialog.getByText('Say why').waitFor()
    await dialog.getByLabel('Reason').fill('upgrade of the database')
    await dialog.getByRole('button', { name: 'Begin maintenance' }).click()
    const note = page.getByRole('status', { name: 'Maintenance' })
    await note.getByText('no new runs start. upgrade of the database').waitFor()
    await page.goto(`${platform.address}/p/default/runs`)
    await note.waitFor()
    const refused = await platform.start('wait').then(() => '', String)
    expect(refused).toContain('upgrade of the database')
    await page.goto(`${platform.address}/system`)
    await page.getByRole('button', { name: 'End the maintenance…' }).click()
    await dialog.getByRole('button', { name: 'End the maintenance' }).click()
    await note.waitFor({ state: 'detached' })
    expect(await waiting()).not.toBe('')
    await context.close()
  })
})

describe('two operators', () => {
  it('with the same run: when one has canceled it, the other reviews before terminating', async () => {
    const id = await waiting()
    const [first, second] = [
      await open(browser, platform.address, `/p/default/runs/${id}`),
      await open(browser, platform.address, `/p/default/runs/${id}`),
    ]
    await second.page.getByRole('button', { name: 'More' }).click()
    await second.page.getByRole('menuitem', { name: 'Terminate…' }).click()
    await second.page.getByRole('dialog').getByLabel('Reason').fill('it hangs')
    await first.page.getByRole('button', { name: 'Cancel…' }).click()
    await first.page.getByRole('dialog').getByLabel('Reason').fill('not needed')
    await first.page.keyboard.press('Control+Enter')
    await first.page.getByRole('heading', { level: 1, name: 'Canceled' }).waitFor()

    const terminated = calls(second.page, 'TerminateRun')
    await second.page
      .getByRole('dialog')
      .getByRole('button', { name: /canceled: Review/ })
      .click()
    expect(
      await second.page
        .getByRole('dialog')
        .getByRole('button', { name: 'Terminate the run' })
        .getAttribute('aria-disabled'),
    ).toBe('true')
    expect(await second.page.getByRole('dialog').getByLabel('Reason').inputValue()).toBe('it hangs')
    expect(terminated.count).toBe(0)
    expect((await show(id)).status).toBe('canceled')
    await Promise.all([first, second].map(({ context }) => context.close()))
  })

  it('of which one has a page that is behind: it does not act on a state that was not seen', async () => {
    const id = await waiting()
    const { context, page } = await open(browser, platform.address, '/p/default/runs')
    // Its network is slow: changes of the run are not reported, and later no answer about it arrives.
    let delivered = Promise.resolve()
    await page.route(/\/WatchRun$/, () => {
      /* never answered */
    })
    await page.route(/\/GetRun$/, async (route) => {
      await delivered
      await route.continue()
    })
    await page.goto(`${platform.address}/p/default/runs/${id}`)
    await page.getByRole('button', { name: 'Cancel…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill('not needed')
    let deliver = () => {
      /* set below */
    }
    delivered = new Promise<void>((resolve) => {
      deliver = resolve
    })
    await platform.cli('run', 'pause', id, '--reason', 'by another operator')
    const canceled = calls(page, 'CancelRun')
    await dialog.getByRole('button', { name: 'Cancel the run' }).click()
    deliver()
    await dialog.getByRole('button', { name: /: Review$/ }).click()
    await dialog.getByRole('button', { name: 'Cancel the run' }).waitFor()
    expect(canceled.count).toBe(0)
    expect((await show(id)).cancelRequested).toBe(false)
    await dialog.getByRole('button', { name: 'Cancel the run' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(canceled.count).toBe(1)
    await context.close()
  })
})

describe('a group of failures', () => {
  it('is replayed as a batch without the runs that were replayed before', async () => {
    // Of this workflow two runs have failed; one of them is replayed, and its replay fails, too.
    const replay = JSON.parse(
      await platform.cli('run', 'replay', ids.failed ?? '', '--reason', 'first try', '-o', 'json'),
    ) as Shown
    await until('the replay has failed', async () => (await show(replay.id)).status === 'failed')
    const { context, page, faults } = await open(browser, platform.address, '/problems?kind=failure')
    const row = page.getByRole('grid').getByRole('row').filter({ hasText: 'Not Found' })
    await until('the group has three runs', async () => (await row.innerText()).includes('3'))
    await row.click()
    await page.getByRole('button', { name: 'Replay 2 runs…' }).click()
    const dialog = page
      .getByRole('dialog')
      .filter({ has: page.getByLabel('Reason') })
      .last()
    await dialog.getByText(/^2 runs allow/).waitFor()
    await dialog.getByLabel('Reason').fill('the table is back')
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click()
    await page.waitForURL(/\/batches\/[0-9a-f-]{36}/)
    await page.getByText('Failures', { exact: true }).first().waitFor({ timeout: 60_000 })
    await page.getByRole('grid').getByText('Failed, same cause').first().waitFor()
    const items = await page.getByRole('grid').innerText()
    const shortID = (id: string) => `${id.slice(0, 8)}…${id.slice(-4)}`
    expect(items).toContain(shortID(ids.failedAgain ?? ''))
    expect(items).toContain(shortID(replay.id))
    expect(items).not.toContain(shortID(ids.failed ?? ''))

    // The failed ones are a list, and so are all of the group, which the list names by workflow, task and error.
    await page.getByRole('link', { name: '2 failed', exact: true }).click()
    await page.waitForURL(/started-by-batch=/)
    await until(
      'the list has both',
      async () =>
        (await page
          .getByRole('grid')
          .getByRole('row', { name: /Failed/ })
          .count()) === 2,
    )
    const { problems } = JSON.parse(
      `{"problems":${await platform.cli('problem', 'list', '--kind', 'failure', '-o', 'json')}}`,
    ) as { problems: { workflow: string; title: string; failureGroup: string }[] }
    const group = problems.find((p) => p.workflow === 'shop/order' && p.title.includes('Not Found'))?.failureGroup ?? ''
    await page.goto(`${platform.address}/p/default/runs?failure-group=${group}`)
    await page.getByText(/^Failure: shop\/order · .*Not Found/).waitFor()
    expect(faults).toEqual([])
    await context.close()
  })
})

/** The place of each row in view, by run. */
const places = (page: Page) =>
  page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll<HTMLElement>('[role=grid] [role=rowgroup] [role=row]')].map((row) => [
        row.id,
        row.getBoundingClientRect().top,
      ]),
    ),
  )

async function startMany(context: BrowserContext, count: number): Promise<void> {
  for (let begun = 0; begun < count; begun += 10) {
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        const answer = await context.request.post(`${platform.address}/v1/projects/default/runs`, {
          data: { workflow: 'shop/parallel' },
        })
        expect(answer.ok()).toBe(true)
      }),
    )
  }
}

describe('a list in which a run is selected', () => {
  it('moves no row while 150 runs start and end as fast as the platform can', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/p/default/runs')
    await page.getByRole('grid').getByRole('checkbox').nth(3).check()
    await page.getByText('1 selected').waitFor()
    const before = await places(page)
    await page.evaluate(() => {
      const shifts = { rows: 0 }
      Object.assign(window, { shifts })
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries() as unknown as {
          sources: { previousRect: DOMRect; currentRect: DOMRect }[]
        }[]) {
          shifts.rows += entry.sources.filter((source) => source.previousRect.y !== source.currentRect.y).length
        }
      }).observe({ type: 'layout-shift', buffered: false })
    })
    await startMany(context, 150)
    // Each run is queued, runs, waits, runs and ends.
    await until(
      'all runs ended',
      async () =>
        (await platform.cli('run', 'list', '--status', 'queued,running', '--limit', '1')).trim().split('\n').length ===
        1,
    )
    await page.getByRole('button', { name: /^1\d\d new runs$/ }).waitFor()
    expect(await places(page)).toEqual(before)
    expect(await page.evaluate(() => (window as unknown as { shifts: { rows: number } }).shifts.rows)).toBe(0)
    expect(await page.getByRole('grid').getByRole('checkbox', { checked: true }).count()).toBe(1)
    expect(faults).toEqual([])
    await context.close()
  })
})

/** Presses Tab until the focus is on a control with this name, as a person does who has no mouse. */
async function tabTo(page: Page, name: RegExp, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press(key)
    const focused = await page.evaluate(() => {
      const element = document.activeElement as HTMLInputElement | null
      return `${element?.getAttribute('aria-label') ?? ''} ${element?.labels?.[0]?.textContent ?? ''} ${element?.textContent ?? ''}`
    })
    if (name.test(focused)) return
  }
  throw new Error(`Tab does not reach ${String(name)}`)
}

describe('without a mouse', () => {
  it('a run is started, found by a filter, opened, understood, replayed, canceled and compared', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/p/default/workflows')
    await page.evaluate(() => {
      Object.assign(window, { presses: 0 })
      for (const event of ['pointerdown', 'mousedown', 'touchstart'])
        window.addEventListener(
          event,
          () => {
            Object.assign(window, { presses: 1 })
          },
          true,
        )
    })
    const keys = page.keyboard
    // Start a run that waits.
    await keys.press('g')
    await keys.press('r')
    await page.waitForURL(/\/runs$/)
    await page.getByRole('grid').waitFor()
    await tabTo(page, /Run…/)
    await keys.press('Enter')
    await page.getByRole('dialog').waitFor()
    expect(await page.evaluate(() => document.activeElement?.closest('[role=dialog]') !== null)).toBe(true)
    await tabTo(page, /^\s*Workflow/)
    await keys.type('shop/wait')
    await page.getByRole('dialog').getByText('This version has no schema').waitFor()
    await keys.press('Control+Enter')
    await anotherRun(page, 'none')
    const started = openedID(page)
    await page.getByRole('heading', { level: 1, name: 'Waiting' }).waitFor()

    // Cancel it.
    await keys.press('c')
    await page.getByRole('dialog').waitFor()
    await keys.type('not needed')
    await keys.press('Control+Enter')
    await page.getByRole('heading', { level: 1, name: 'Canceled' }).waitFor()
    expect((await show(started)).status).toBe('canceled')

    // Find the failed runs of a workflow.
    await keys.press('g')
    await keys.press('r')
    await page.waitForURL(/\/runs(\?|$)/)
    await keys.press('f')
    await page.getByRole('dialog', { name: 'Filter' }).waitFor()
    await tabTo(page, /^\s*Failed/)
    await keys.press('Space')
    await page.waitForURL(/status=failed/)
    await keys.press('Escape')
    await until(
      'only failed runs are listed',
      async () =>
        (await page
          .getByRole('grid')
          .getByRole('row', { name: /Failed/ })
          .count()) > 0 &&
        (await page
          .getByRole('grid')
          .getByRole('row', { name: /Canceled|Completed/ })
          .count()) === 0,
    )
    await keys.press('j')
    await keys.press('j')
    await keys.press('Enter')
    await anotherRun(page, started)
    const failed = openedID(page)

    // Understand it.
    await page.getByRole('treeitem').first().waitFor()
    await keys.press('n')
    await page.getByRole('tab', { name: 'Error', selected: true }).waitFor()

    // Replay it.
    await keys.press('r')
    await page.getByRole('dialog').waitFor()
    await tabTo(page, /^\s*Reason/)
    await keys.type('once more')
    await keys.press('Control+Enter')
    await anotherRun(page, failed)
    expect((await show(openedID(page))).replayOf).toBe(failed)
    await page.getByRole('heading', { level: 1, name: /Failed/ }).waitFor()

    // Compare it with the last good run: the first difference has the focus.
    await keys.press('o')
    await page.getByRole('button', { name: 'With the last good run' }).waitFor()
    await tabTo(page, /With the last good run/)
    await keys.press('Enter')
    await page.getByText('first difference').waitFor()
    await until('the first difference has the focus', async () =>
      page.evaluate(() => document.activeElement?.textContent.includes('first difference')),
    )
    expect(await page.evaluate(() => (window as unknown as { presses: number }).presses)).toBe(0)
    expect(faults).toEqual([])
    await context.close()
  })
})
