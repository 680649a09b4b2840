import { fromBinary } from '@bufbuild/protobuf'
import type { Browser, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ReplayRunRequestSchema } from '../../../src/gen/signalbox/v1/run_pb'
import { launch, open, violations } from '../../browser'
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

const address = (id: string | undefined, rest = '') => `/p/default/runs/${id ?? ''}${rest}`

interface Shown {
  id: string
  status: string
  replayOf?: string
  cancelRequested: boolean
  input: unknown
}
const show = async (id: string) => JSON.parse(await platform.cli('run', 'show', id, '-o', 'json')) as Shown

/** replaysSent returns the bodies of the replays that the page sends from now on, dry runs left out. */
function replaysSent(page: Page): string[] {
  const bodies: string[] = []
  page.on('request', (request: Request) => {
    const body = request.postDataBuffer() ?? Buffer.alloc(0)
    if (request.url().endsWith('/ReplayRun') && !fromBinary(ReplayRunRequestSchema, body).dryRun)
      bodies.push(body.toString('utf8'))
  })
  return bodies
}

async function replayOf(page: Page, id: string): Promise<Shown> {
  await page.waitForURL((url) => /\/runs\/[0-9a-f-]{36}$/.test(url.pathname) && !url.pathname.endsWith(id))
  return show(new URL(page.url()).pathname.split('/').pop() ?? '')
}

describe('a replay', () => {
  it('sends no input and no patch when nothing was edited, and opens the new run', async () => {
    const { context, page, faults } = await open(browser, platform.address, address(ids.failed))
    const calls = replaysSent(page)
    await page.getByRole('button', { name: 'Replay…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Replay', exact: true }).click()
    await page.getByText('A reason is required.').waitFor()
    expect(calls).toEqual([])
    await page.getByRole('dialog').getByLabel('Reason').fill('stock is back')
    await page.getByRole('dialog').getByRole('button', { name: 'Replay', exact: true }).click()
    const run = await replayOf(page, ids.failed ?? '')
    expect(run.replayOf).toBe(ids.failed)
    expect(calls).toHaveLength(1)
    expect(calls[0]).not.toContain('secret-word')
    expect(calls[0]).not.toContain('"op"')
    expect(calls[0]).not.toContain('gone-table')
    expect(faults).toEqual([])
    await context.close()
  })

  it('sends one operation for one edit, keeps sealed values, and refuses a typed mark', async () => {
    const { context, page, faults } = await open(browser, platform.address, address(ids.failed))
    const calls = replaysSent(page)
    await page.getByRole('button', { name: 'Replay…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Edit' }).click()
    const editor = dialog.locator('.cm-content')
    await editor.waitFor()
    await dialog.getByText('Sealed, kept: 1 of 1').waitFor()
    const type = async (text: string) => {
      // The first line of the input is { and the second is the order's number.
      await editor.click()
      await page.keyboard.press('Control+Home')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Home')
      await page.keyboard.press('Shift+End')
      await page.keyboard.insertText(`  "order": ${text},`)
    }
    await type('"⟦redacted⟧"')
    await dialog.getByText('A mark cannot be typed').waitFor()
    await dialog.getByLabel('Reason').fill('another number')
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click()
    expect(calls).toEqual([])
    await type('"A-22"')
    await dialog.getByText('1 change', { exact: true }).waitFor()
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click()
    const run = await replayOf(page, ids.failed ?? '')
    expect(run.input).toMatchObject({ order: 'A-22', password: '⟦redacted⟧' })
    expect(calls).toHaveLength(1)
    expect(calls[0]).toContain('[{"op":"replace","path":"/order","value":"A-22"}]')
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('a control', () => {
  it('has to be reviewed when the run changed under the dialog', async () => {
    const id = await platform.start('wait')
    await until('the run waits', async () => (await show(id)).status === 'waiting')
    const { context, page, faults } = await open(browser, platform.address, address(id))
    await page.getByRole('button', { name: 'Cancel…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Cancel the run' }).waitFor()
    await platform.cli('run', 'cancel', id, '--reason', 'by another operator')
    await dialog.getByRole('button', { name: /canceled: Review/ }).click()
    await dialog.getByRole('button', { name: 'Cancel the run' }).waitFor()
    expect(await dialog.getByRole('button', { name: 'Cancel the run' }).getAttribute('aria-disabled')).toBe('true')
    expect(faults).toEqual([])
    await context.close()
  })

  it('shows what the server answered, and the run follows without a reload', async () => {
    const id = await platform.start('wait')
    const { context, page } = await open(browser, platform.address, address(id))
    await page.getByRole('button', { name: 'Cancel…' }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('not needed')
    await page.keyboard.press('Control+Enter')
    await page.locator('h1', { hasText: 'Canceled' }).waitFor()
    expect(await page.getByRole('button', { name: 'Cancel…' }).getAttribute('aria-disabled')).toBe('true')
    await context.close()
  })
})

describe('a run that was opened from the list', () => {
  it('leads back to the list with its filters, and to the next row', async () => {
    const { context, page, faults } = await open(
      browser,
      platform.address,
      '/p/default/runs?workflow=shop/order&status=failed',
    )
    await page.getByRole('grid').getByRole('link').first().click()
    await page.getByRole('button', { name: 'Next', exact: true }).waitFor()
    const before = page.url()
    await page.keyboard.press(']')
    await page.waitForURL((url) => url.href !== before)
    await page.getByRole('link', { name: /^Runs \(/ }).click()
    await page.waitForURL((url) => url.searchParams.get('status') === 'failed' && url.pathname.endsWith('/runs'))
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('the search in the steps', () => {
  it('finds a text that only an output has, and what it finds is a link to the step', async () => {
    const { context, page, faults } = await open(browser, platform.address, address(ids.long))
    const find = page.getByRole('searchbox', { name: 'Find in steps' })
    const rows = page.getByRole('treeitem')
    // The square of 387 is the output of one iteration of the loop, and the input of the next one.
    await find.fill('149769')
    await page.getByText('2 found', { exact: true }).waitFor()
    const row = rows.filter({ hasText: 'in input or output' }).first()
    expect(await rows.count()).toBe(3)
    expect(await row.getByRole('link', { name: 'square' }).getAttribute('href')).toMatch(
      /q=149769.*&step=\d+|step=\d+.*&q=149769/,
    )
    await row.getByRole('link', { name: 'square' }).click()
    await page.waitForURL((url) => url.searchParams.get('q') === '149769' && url.searchParams.has('step'))
    await page.getByRole('tab', { name: 'Output' }).click()
    await page.getByRole('tabpanel', { name: 'Output' }).getByText('149769').waitFor()
    expect(await violations(page)).toEqual([])

    await find.fill('no step has this')
    await page.getByText('No step contains “no step has this”.').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.waitForURL((url) => !url.searchParams.has('q'))
    expect(faults).toEqual([])
    await context.close()
  })

  it('gives way to the next failure', async () => {
    const { context, page } = await open(browser, platform.address, address(ids.failed, '?q=chair'))
    await page
      .getByText(/No step contains “chair”|\d found/)
      .first()
      .waitFor()
    await page.getByRole('button', { name: 'Next failure' }).click()
    await page.getByRole('tab', { name: 'Error', selected: true }).waitFor()
    expect(new URL(page.url()).searchParams.get('q')).toBeNull()
    await context.close()
  })
})

describe('an error that a try has caught', () => {
  it('is shown as caught, and listed by the tool', async () => {
    const { context, page, faults } = await open(browser, platform.address, address(ids.parallel))
    await page.getByRole('button', { name: 'Caught 1' }).click()
    await page.getByRole('treeitem', { name: /fails.*Failed, caught/ }).waitFor()
    await page.getByRole('button', { name: 'Failed 0' }).waitFor()
    const listed = (await platform.cli('run', 'steps', ids.parallel ?? '', '--caught', '-o', 'json'))
      .trim()
      .split('\n')
      .join('')
    expect(listed).toContain('"task": "fails"')
    expect(listed).toContain('"caught": true')
    expect(await platform.cli('run', 'steps', ids.parallel ?? '', '--caught=false')).not.toContain('fails')
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('the waits of a run', () => {
  it('are on a tab of their own, as the tool lists them', async () => {
    const { context, page, faults } = await open(browser, platform.address, address(ids.waiting))
    await page.getByRole('tab', { name: /Waits/ }).click()
    await page
      .getByRole('grid', { name: 'waits' })
      .getByRole('row', { name: /rest Timer timer/ })
      .waitFor()
    expect(await platform.cli('run', 'waits', ids.waiting ?? '')).toMatch(/rest +timer +timer, since/)
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('a comparison', () => {
  it('follows an open run until it ends', async () => {
    const opened = await platform.start('wait')
    await until('the run waits', async () => (await show(opened)).status === 'waiting')
    const { context, page, faults } = await open(
      browser,
      platform.address,
      `/p/default/compare?a=${opened}&b=${ids.canceled ?? ''}`,
    )
    const side = page.getByRole('region', { name: 'Run A' })
    await side.getByText('Waiting').waitFor()
    await platform.cli('run', 'cancel', opened, '--reason', 'seen enough')
    await side.getByText('Canceled').waitFor()
    await page.getByRole('tab', { name: 'Path equal' }).waitFor()
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('the page System', () => {
  it('shows the database and the task queues, as the tool does', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/system')
    await page
      .getByRole('region', { name: 'Task queues' })
      .getByRole('row', { name: /default signalbox-default workflow tasks [1-9]/ })
      .waitFor()
    await page.getByText(/^SQLite 3\./).waitFor()
    expect(await platform.cli('system', 'queues')).toMatch(/default +signalbox-default +[1-9]/)
    expect(await platform.cli('system', 'status')).toMatch(/database +sqlite 3\./)
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('by the keyboard alone', () => {
  it('n opens the failure, and the comparison has its first difference focused', async () => {
    const { context, page, faults } = await open(browser, platform.address, address(ids.failed))
    await page.getByRole('treeitem').first().waitFor()
    await page.keyboard.press('n')
    await page.getByRole('tab', { name: 'Error', selected: true }).waitFor()
    expect(new URL(page.url()).searchParams.get('step')).not.toBeNull()
    await page.keyboard.press('o')
    await page.getByRole('button', { name: 'Compare with it' }).click()
    await page.getByText('first difference').waitFor()
    expect(await page.evaluate(() => document.activeElement?.textContent)).toContain('first difference')
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('a value over 16 KiB', () => {
  it('is shown shortened with its size, and whole on request', async () => {
    const notes = Array.from({ length: 1000 }, (_, i) => `note-${i} ${'x'.repeat(80)}`)
    const id = await platform.start('order', {
      order: 'A-5',
      items: [{ sku: 'lamp', count: 2 }],
      base: platform.stock,
      notes,
    })
    await until('the run has completed', async () => (await show(id)).status === 'completed')
    const { context, page, faults } = await open(browser, platform.address, address(id, '?step=1&pane=input'))
    await page.getByText(/^Shortened, 9\d\.\d kB in all\./).waitFor()
    await page.getByLabel('Find in the input').fill('note-999')
    await page.getByText('no match').waitFor()
    await page.getByRole('button', { name: 'Show all' }).click()
    await page.getByText('1 of 1', { exact: true }).waitFor() // what was typed is not lost
    expect(await page.getByText(/^Shortened/).count()).toBe(0)
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('what a program prints', () => {
  it('is shown while it runs, and stays, without what is sensitive', async () => {
    const id = await platform.start('script', { password: 'secret-word', milliseconds: 12_000 })
    const { context, page, faults } = await open(browser, platform.address, address(id, '?step=1&pane=logs'))
    await page.getByRole('heading', { name: 'Attempt 1 (running)' }).waitFor()
    const output = page.getByLabel('Standard output of attempt 1')
    await output.getByText('begun with').waitFor()
    expect(await output.textContent()).not.toContain('ended')
    await output.getByText('ended').waitFor()
    await page.getByRole('heading', { name: 'Attempt 1', exact: true }).waitFor()
    await page.getByLabel('Standard error of attempt 1').getByText('a warning').waitFor()
    expect(await page.content()).not.toContain('secret-word')
    expect(await violations(page)).toEqual([])
    for (const width of [1280, 1920, 390]) {
      await page.setViewportSize({ width, height: 844 })
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
    }
    expect(faults).toEqual([])
    await context.close()
  })
})
