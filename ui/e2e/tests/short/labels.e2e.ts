// Labels of runs: given in the dialog, shown as text whatever they are, and the way to the runs that have them.
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, loaded, open, violations } from '../../browser'
import { type Platform, startPlatform } from '../../platform'

let platform: Platform
let browser: Browser

const hostile = '<img src=x onerror="document.title=1">, a:b=c&d'

const input = (order: string) => JSON.stringify({ order, items: [{ sku: 'lamp', count: 1 }], base: platform.stock })

interface Run {
  id: string
  labels: Record<string, string>
  replayOf: string
}
const show = async (id: string) => JSON.parse(await platform.cli('run', 'show', id, '-o', 'json')) as Run

const startLabelled = async (order: string, ...labels: string[]) =>
  (
    JSON.parse(
      await platform.cli(
        'run',
        'start',
        'order',
        '--input',
        input(order),
        ...labels.flatMap((label) => ['--label', label]),
        '-o',
        'json',
      ),
    ) as Run
  ).id

const openedRun = async (page: Page, not = 'none'): Promise<string> => {
  await page.waitForURL((url) => /\/runs\/[0-9a-f-]{36}/.test(url.pathname) && !url.pathname.includes(not))
  await loaded(page)
  return /runs\/([0-9a-f-]{36})/.exec(page.url())?.[1] ?? ''
}

const links = (page: Page) => page.getByRole('grid').getByRole('link')
const listed = async (page: Page, ids: string[]) => {
  await page.getByText(ids.length === 1 ? '1 run, all that match' : `${ids.length} runs, all that match`).waitFor()
  expect(
    await links(page).evaluateAll((found) => found.map((link) => link.getAttribute('href')?.split('/').pop())),
  ).toEqual(ids)
}

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startPlatform(), launch()])
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

describe('a label', () => {
  it('is given in the dialog, shown on the page of the run, and leads to the list of its runs', async () => {
    await startLabelled('B-1', 'customer=another')
    const { context, page, faults } = await open(browser, platform.address, '/p/default/workflows/shop/order')
    await page.getByRole('button', { name: 'Run…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'JSON', exact: true }).click()
    await dialog.getByRole('textbox', { name: 'Input' }).fill(input('B-2'))
    await dialog.getByRole('button', { name: 'Add a label' }).click()
    // By the keyboard alone: the new row has the focus, and Enter in its value adds the next one.
    await page.keyboard.type('customer')
    await page.keyboard.press('Tab')
    await page.keyboard.type(hostile)
    await page.keyboard.press('Enter')
    await page.keyboard.type('bad key')
    await page.keyboard.press('Tab')
    await page.keyboard.type('x')
    await dialog.getByText('The key has other characters').waitFor()
    expect(await dialog.getByRole('button', { name: 'Run', exact: true }).getAttribute('aria-disabled')).toBe('true')
    await dialog.getByLabel('Key of label 2').fill('region')
    await dialog.getByText('Computed by the workflow: order=B-2').waitFor()
    expect(await violations(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Run', exact: true }).click()
    const id = await openedRun(page)
    expect((await show(id)).labels).toEqual({ customer: hostile, region: 'x', order: 'B-2' })

    const chip = page.getByRole('list', { name: 'Labels' }).getByRole('link', { name: `customer=${hostile}` })
    await chip.waitFor()
    expect(await violations(page)).toEqual([])
    await chip.click()
    await page.waitForURL(/\/runs\?label=customer:/)
    await listed(page, [id])
    await page.reload()
    await loaded(page)
    await listed(page, [id])
    await page.getByRole('button', { name: `Remove Label: customer=${hostile}` }).waitFor()
    expect(await page.title()).not.toBe('1')
    expect(faults).toEqual([])
    await context.close()
  })

  it('that the server refuses has the reason at its row', async () => {
    const { context, page } = await open(browser, platform.address, '/p/default/workflows/shop/order')
    await page.getByRole('button', { name: 'Run…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'JSON', exact: true }).click()
    await dialog
      .getByRole('textbox', { name: 'Input' })
      .fill(JSON.stringify({ order: 'B-3', items: [{ sku: 'lamp', count: 1 }], password: 'secret-word' }))
    await dialog.getByRole('button', { name: 'Add a label' }).click()
    await page.keyboard.type('note')
    await page.keyboard.press('Tab')
    await page.keyboard.type('it is secret-word')
    await dialog.getByRole('button', { name: 'Run', exact: true }).click()
    const value = dialog.getByLabel('Value of label 1')
    await dialog.getByRole('group', { name: 'Labels' }).getByRole('alert').waitFor()
    expect(await value.getAttribute('aria-invalid')).toBe('true')
    expect(await dialog.getByRole('group', { name: 'Labels' }).getByRole('alert').innerText()).toContain(
      'the value contains a sensitive value',
    )
    await context.close()
  })

  it('is kept by a replay, which can replace it and add others', async () => {
    const id = await startLabelled('C-1', 'region=eu')
    const { context, page } = await open(browser, platform.address, `/p/default/runs/${id}`)
    await page.getByRole('button', { name: 'Replay…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Replace region=eu' }).click()
    await page.keyboard.press('Control+a')
    await page.keyboard.type('us')
    await dialog.getByText('Replaces eu').waitFor()
    await dialog.getByRole('button', { name: 'Add a label' }).click()
    await page.keyboard.type('ticket')
    await page.keyboard.press('Tab')
    await page.keyboard.type('T-1')
    await dialog.getByLabel('Reason').fill('wrong region')
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click()
    const replay = await show(await openedRun(page, id))
    expect(replay.replayOf).toBe(id)
    expect(replay.labels).toEqual({ order: 'C-1', region: 'us', ticket: 'T-1' })
    await context.close()
  })

  it('filters the list from the palette, the panel, a row and the address, which names what it cannot use', async () => {
    const [first, second] = [await startLabelled('D-1', 'channel=web'), await startLabelled('D-1', 'channel=shop')]
    const { context, page, faults } = await open(browser, platform.address, '/p/default/runs?columns=run,labels')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find' }).fill('order=D-1')
    await page.getByRole('option', { name: 'List the runs with “order=D-1”' }).click()
    await page.waitForURL(/\/runs\?label=order:D-1$/)
    await listed(page, [second, first])

    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByLabel('Label', { exact: true }).fill('channel')
    await page.keyboard.press('Enter')
    await page.getByText('Write key=value, such as order=4711').waitFor()
    await page.getByLabel('Label', { exact: true }).fill('channel=web')
    await page.keyboard.press('Enter')
    await page.waitForURL(/label=order:D-1&label=channel:web/)
    await listed(page, [first])
    await page.keyboard.press('Escape')

    await page.goto(`${platform.address}/p/default/runs?columns=run,labels&label=odd`)
    await page.getByText('label=odd: not a label such as order:4711').waitFor()
    await page.getByRole('grid').getByRole('button', { name: 'channel=shop' }).click()
    await page.waitForURL(/label=channel:shop/)
    await listed(page, [second])
    expect(await violations(page)).toEqual([])
    expect(faults).toEqual([])
    await context.close()
  })

  it('selects for an export and a batch', async () => {
    const id = await startLabelled('E-1', 'wave=1')
    await startLabelled('E-2', 'wave=2')
    const { context, page } = await open(browser, platform.address, '/p/default/runs?label=wave:1')
    await page.getByRole('button', { name: 'Export' }).click()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: 'JSON, one run per line' }).click(),
    ])
    const lines = (await (await fetch(download.url())).text()).trim().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as Run).id)).toEqual([id])

    await page
      .getByRole('grid')
      .getByRole('checkbox', { name: /Select run/ })
      .check()
    await page.getByRole('button', { name: 'Replay…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('radio', { name: /All/ }).check()
    await dialog.getByText(/1 run allow/).waitFor()
    await context.close()
  })
})
