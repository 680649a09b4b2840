// Measures how fast pages are with 100,000 runs of which some change all the time, and prints a table: `npm run bench:studio`, by
// `scripts/services.sh with`; `make bench ONLY=studio` writes the table into docs/benchmarks.md.
// SHORT=1 measures everything once, to see that it works.
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-web'
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core'
import { WatchService } from '../src/gen/signalbox/v1/watch_pb'
import { launch, loaded, open } from './browser'
import { until } from './platform'
import { type Processes, startProcesses } from './processes'

const short = process.env.SHORT === '1'
const plan = short ? { runs: 10_000, rounds: 3, updates: 300 } : { runs: 100_000, rounds: 15, updates: 10_000 }
/** A run starts, waits ten times for half a second and ends: a page is shown eleven changes of it. */
const runsPerSecond = Number(process.env.RATE ?? '6')
const waits = 10
const progress = (text: string) => {
  process.stderr.write(`bench: ${text}\n`)
}

interface Figure {
  what: string
  figure: string
  aim?: string
  met?: boolean
}
const figures: Figure[] = []
const sorted = (values: number[]) => [...values].sort((a, b) => a - b)
const median = (values: number[]) => sorted(values)[Math.floor(values.length / 2)] ?? NaN
const ms = (value: number) => `${Math.round(value)} ms`
const times = (what: string, values: number[], most: number) => {
  figures.push({
    what,
    figure: `${ms(median(values))} (${ms(Math.max(...values))})`,
    aim: `< ${most} ms`,
    met: median(values) < most,
  })
}

/** Notes the time of the first element that matches, since the page was navigated to or since the last click, and the tasks over 50 ms. */
const observer = (selector: string) => `
  window.measured = { first: undefined, from: 0, tasks: [] }
  new MutationObserver(() => {
    const m = window.measured
    if (m.first === undefined && document.querySelector(${JSON.stringify(selector)}) !== null) requestAnimationFrame(() => setTimeout(() => { m.first ??= performance.now() - m.from }))
  }).observe(document, { childList: true, subtree: true })
  new PerformanceObserver((list) => { for (const task of list.getEntries()) window.measured.tasks.push(task.duration) }).observe({ type: 'longtask' })
  window.addEventListener('click', () => { window.measured.first = undefined; window.measured.from = performance.now() }, true)`

/** The changes that a page with the list is shown. */
interface Shown {
  count: () => number
}

interface Measured {
  first?: number
  tasks: number[]
}
const measured = async (page: Page) => page.evaluate(() => (window as unknown as { measured: Measured }).measured)
const first = async (page: Page) => until('the first element', async () => (await measured(page)).first)

const rows = '[role=grid] [role=rowgroup] [role=row]'

/** A context in which a page notes when an element is there. */
async function observed(
  browser: Browser,
  platform: Processes,
  selector: string,
): Promise<{ context: BrowserContext; page: Page }> {
  const { context, page } = await open(browser, platform.address, '/system')
  await context.addInitScript(observer(selector))
  return { context, page }
}

/** opens measures the time from the request of a page until an element is there, with a warm cache of the browser. */
async function opens(browser: Browser, platform: Processes, path: string, selector: string): Promise<number[]> {
  const { context, page } = await observed(browser, platform, selector)
  const values: number[] = []
  for (let i = 0; i <= plan.rounds; i++) {
    await page.goto(platform.address + path)
    values.push(await first(page))
  }
  await context.close()
  return values.slice(1)
}

/** Starts so many runs per second until it is stopped. */
function changes(platform: Processes, perSecond: number): () => Promise<void> {
  let going = true
  const work = (async () => {
    for (let due = Date.now(); going; due += 1000 / perSecond) {
      if (due > Date.now()) await new Promise((resolve) => setTimeout(resolve, due - Date.now()))
      void fetch(`${platform.address}/v1/projects/default/runs`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"workflow":"bench/waits"}',
      })
        .then(async (answer) => answer.text())
        .catch(() => undefined)
    }
  })()
  return async () => {
    going = false
    await work
  }
}

/**
 * Follows the list of runs by a stream as the page does, and counts the rows that the server sends because a run is new or has changed. It
 * merges the changes of a run that are less than a quarter of a second apart, so that this is what a page is shown, not what was written.
 */
function followChanges(platform: Processes): Shown & { stop: () => void } {
  const end = new AbortController()
  let rows = 0
  void (async () => {
    const client = createClient(
      WatchService,
      createConnectTransport({ baseUrl: platform.address, useBinaryFormat: true }),
    )
    const list = { case: 'runs' as const, value: { list: { project: 'default', pageSize: 50 } } }
    for await (const { content, reset } of client.watch(
      { project: 'default', topics: [{ topic: list }] },
      { signal: end.signal },
    )) {
      if (content.case === 'runs' && !reset) rows += content.value.rows.length
    }
  })().catch((error: unknown) => {
    if (!end.signal.aborted) throw error
  })
  return {
    count: () => rows,
    stop: () => {
      end.abort()
    },
  }
}

/** rateFrom returns a function that returns the changes per second that a page was shown since now. */
function rateFrom(shown: Shown): () => number {
  const [from, began] = [shown.count(), performance.now()]
  return () => (shown.count() - from) / ((performance.now() - began) / 1000)
}

async function heap(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage')
  return (await session.send('Runtime.getHeapUsage')).usedSize / 1e6
}

/** list returns the changes per second that the page was shown meanwhile. */
async function list(browser: Browser, platform: Processes, shown: Shown): Promise<number> {
  progress('first rows')
  const rate = rateFrom(shown)
  times('first rows, page loaded', await opens(browser, platform, '/p/default/runs', rows), 300)
  const { context, page } = await observed(browser, platform, rows)
  await page.goto(`${platform.address}/p/default/workflows`)
  await loaded(page)
  const inside: number[] = []
  for (let i = 0; i <= plan.rounds; i++) {
    await page.getByRole('navigation').getByRole('link', { name: 'Workflows' }).click()
    await page.getByRole('heading', { level: 1, name: 'Workflows' }).waitFor()
    await page.getByRole('navigation').getByRole('link', { name: 'Runs' }).click()
    inside.push(await first(page))
  }
  times('first rows, from another page', inside.slice(1), 300)

  progress('filters')
  const filtered: number[] = []
  await page.getByRole('grid').waitFor()
  await page.evaluate(() => {
    ;(window as unknown as { measured: Measured }).measured.tasks = []
  })
  for (let i = 0; i < plan.rounds; i++) {
    const status = i % 2 === 0 ? 'Failed' : 'Canceled'
    await page.getByRole('group', { name: 'Runs by status' }).getByRole('button', { name: status }).click()
    const began = Date.now()
    await until('the filtered rows', async () =>
      page.evaluate((word) => {
        const shown = [...document.querySelectorAll('[role=grid] [role=rowgroup] [role=row]')]
        return shown.length > 0 && shown.every((row) => row.textContent.includes(word))
      }, status),
    )
    filtered.push(Date.now() - began)
    await page.getByRole('group', { name: 'Runs by status' }).getByRole('button', { name: status }).click()
    await page.waitForFunction(() => document.querySelectorAll('[role=grid] [role=rowgroup] [role=row]').length > 5)
  }
  figures.push({
    what: 'a status as filter, click to rows',
    figure: `${ms(median(filtered))} (${ms(Math.max(...filtered))})`,
  })
  const filterTasks = (await measured(page)).tasks
  const longest = (tasks: number[]) =>
    tasks.length === 0 ? 'none over 50 ms' : `${ms(Math.max(...tasks))}, ${tasks.length} over 50 ms`
  figures.push({
    what: 'longest task while filtering',
    figure: longest(filterTasks),
    aim: '< 100 ms',
    met: Math.max(0, ...filterTasks) < 100,
  })

  progress('scrolling')
  await page.evaluate(() => {
    ;(window as unknown as { measured: Measured }).measured.tasks = []
  })
  await page.getByRole('grid').hover()
  for (let i = 0; i < 20 * plan.rounds; i++) {
    await page.mouse.wheel(0, i % 40 === 39 ? -20_000 : 700)
    await page.waitForTimeout(30)
  }
  const scrollTasks = (await measured(page)).tasks
  figures.push({
    what: 'longest task while scrolling',
    figure: longest(scrollTasks),
    aim: '< 100 ms',
    met: Math.max(0, ...scrollTasks) < 100,
  })
  await context.close()
  return rate()
}

/** memory reads the memory of the page over many changes. It returns the changes per second meanwhile. */
async function memory(browser: Browser, platform: Processes, shown: Shown): Promise<number> {
  progress(`memory over ${plan.updates} changes`)
  const { context, page } = await open(browser, platform.address, '/p/default/runs')
  const session = await context.newCDPSession(page)
  await page.waitForTimeout(3000)
  const begun = shown.count()
  const rate = rateFrom(shown)
  const values = [await heap(session)]
  for (let part = 1; part <= 4; part++) {
    await until('changes', async () => Promise.resolve(shown.count() - begun > (plan.updates * part) / 4), 1_000_000)
    values.push(await heap(session))
  }
  const [from = NaN, ...rest] = values
  const to = rest.at(-1) ?? NaN
  figures.push({
    what: `memory of the page over ${plan.updates.toLocaleString('en')} changes, after each quarter`,
    figure: `${values.map((value) => value.toFixed(1)).join(', ')} MB`,
    aim: 'flat: < 10 MB more',
    met: to - from < 10,
  })
  await context.close()
  return rate()
}

async function tabs(browser: Browser, platform: Processes, id: string): Promise<void> {
  progress('tabs')
  const { context, page } = await open(browser, platform.address, '/system')
  const began = new Map<unknown, number>()
  context.on('request', (request) => {
    if (/\/Watch(Run)?$/.test(request.url())) began.set(request, performance.now())
  })
  context.on('requestfinished', (request) => {
    began.delete(request)
  })
  context.on('requestfailed', (request) => {
    began.delete(request)
  })
  await page.goto(`${platform.address}/p/default/runs`)
  await loaded(page)
  await until('the stream of one tab', async () => Promise.resolve(began.size >= 1))
  await page.waitForTimeout(1000)
  figures.push({ what: 'streams of one tab with a list', figure: String(began.size), aim: '1', met: began.size === 1 })
  for (let i = 0; i < 5; i++) {
    const tab = await context.newPage()
    await tab.goto(`${platform.address}/p/default/runs${i % 2 === 0 ? `/${id}` : ''}`)
    await loaded(tab)
  }
  // A tab that may not stream reads a message of its run each 5 s, and waits 2 s for it: what is older is a stream.
  await page.waitForTimeout(3000)
  const most = { streams: 0, reads: 0 }
  for (let i = 0; i < 100; i++) {
    const streams = [...began.values()].filter((time) => performance.now() - time > 2500).length
    most.streams = Math.max(most.streams, streams)
    most.reads = Math.max(most.reads, began.size - streams)
    await page.waitForTimeout(100)
  }
  figures.push({
    what: 'streams of six tabs, three of them with a run, and reads beside them',
    figure: `${most.streams}, ${most.reads}`,
    aim: '≤ 4, ≤ 1',
    met: most.streams <= 4 && most.reads <= 1,
  })
  await context.close()
}

async function publish(platform: Processes, name: string, tasks: string): Promise<void> {
  const file = join(tmpdir(), `${name}.yaml`)
  writeFileSync(file, `document: {dsl: '1.0.3', namespace: bench, name: ${name}, version: '1.0.0'}\ndo:\n${tasks}`)
  await platform.cli('workflow', 'publish', file)
}

async function ended(platform: Processes, workflow: string, input?: unknown): Promise<string> {
  const id = await platform.start(workflow, input)
  await until(`${workflow} completed`, async () => (await platform.show(id)).status === 'completed', 120_000)
  return id
}

async function run(browser: Browser, platform: Processes): Promise<void> {
  progress('runs')
  await publish(
    platform,
    'branches',
    `  - all:\n      fork:\n        branches:\n${Array.from({ length: 200 }, (_, i) => `          - b${i}: {set: {n: ${i}}}\n`).join('')}`,
  )
  await publish(platform, 'payload', '  - big: {set: {text: \'${ [range(24000)] | map("line of text \\(.)") }\'}}\n')
  const steps = await ended(platform, 'shop/long', { count: 10_000 })
  const branches = await ended(platform, 'bench/branches')
  const payload = await ended(platform, 'bench/payload')
  const path = (id: string, rest = '') => `/p/default/runs/${id}${rest}`
  const cold = await browser.newContext()
  await cold.addInitScript(observer('[role=treeitem]'))
  const coldPage = await cold.newPage()
  await coldPage.goto(platform.address + path(steps))
  const coldTime = await first(coldPage)
  await cold.close()
  times('a run of 10,000 steps, page loaded to its first steps, the cache of the browser empty', [coldTime], 1000)
  times('the same, warm', await opens(browser, platform, path(steps), '[role=treeitem]'), 1000)
  times(
    'a run of 200 parallel branches, steps',
    await opens(browser, platform, path(branches), '[role=treeitem]'),
    1000,
  )
  times('the same, graph', await opens(browser, platform, path(branches, '?tab=graph'), '.react-flow__node'), 1000)
  times(
    'the same, timeline',
    await opens(browser, platform, path(branches, '?tab=timeline'), '[aria-label=Timeline] button'),
    1000,
  )
  times(
    'an output of 500 kB',
    await opens(
      browser,
      platform,
      path(payload, '?step=1&pane=output'),
      '[aria-label^="Step 1 "] [role=treeitem], [aria-label^="Step 1 "] [aria-label$="as text"]',
    ),
    1000,
  )
}

const [platform, browser] = await Promise.all([startProcesses(), launch()])
try {
  await platform.worker.start()
  await platform.publish()
  progress(`${plan.runs} runs`)
  const sql = new URL('runs.sql', import.meta.url).pathname
  await platform.insert(sql, { count: String(plan.runs) })
  await run(browser, platform)
  await publish(
    platform,
    'waits',
    Array.from({ length: waits }, (_, i) => `  - w${i}: {wait: {milliseconds: 500}}\n`).join(''),
  )
  const stop = changes(platform, runsPerSecond)
  const shown = followChanges(platform)
  const waiting = await platform.start('wait')
  const rates = [await list(browser, platform, shown), await memory(browser, platform, shown)]
  figures.push({
    what: 'changes of runs that the page was shown per second meanwhile, least of both',
    figure: String(Math.floor(Math.min(...rates))),
    aim: '≥ 50',
    met: Math.min(...rates) >= 50,
  })
  await tabs(browser, platform, waiting)
  shown.stop()
  await stop()
} finally {
  await browser.close()
  await platform.stop()
}
const cell = ({ what, figure, aim = '', met }: Figure) =>
  `| ${what} | ${figure} | ${aim} | ${met === undefined ? '' : met ? 'met' : 'missed'} |`
process.stdout.write(['| what | figure | aim | |', '|---|---|---|---|', ...figures.map(cell)].join('\n') + '\n')
