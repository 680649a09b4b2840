import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, loaded, open, violations } from '../../browser'
import { type Platform, seed, startPlatform } from '../../platform'

let platform: Platform
let browser: Browser

interface View {
  id: string
  name: string
  shared: boolean
  revision: number
  query: { filter?: { statuses?: string[] }; columns?: string[] }
}

const stored = async (): Promise<View[]> => JSON.parse(await platform.cli('view', 'list', '-o', 'json')) as View[]

const bar = (page: Page) => page.getByRole('group', { name: 'Views' })
const act = async (page: Page, item: string) => {
  await page.getByRole('button', { name: 'View…' }).click()
  await page.getByRole('menuitem', { name: item }).click()
}

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startPlatform(), launch()])
  await seed(platform)
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

describe('a view', () => {
  it('is saved, changed, found in the palette and deleted', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/p/default/runs?status=failed')
    await page.getByRole('button', { name: 'Save view' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await dialog.getByText('Give the view a name.').waitFor()
    await dialog.getByLabel('Name').fill('Broken orders')
    await dialog.getByRole('checkbox').check()
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await page.waitForURL(/view=[0-9a-f-]{36}$/)
    await bar(page)
      .getByRole('button', { name: /Broken orders/, pressed: true })
      .waitFor()
    const [view] = await stored()
    expect(view).toMatchObject({ name: 'Broken orders', shared: true, query: { filter: { statuses: ['failed'] } } })

    // A column, then the filter: each differs from what is saved.
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByRole('checkbox', { name: 'Actor' }).check()
    await page.keyboard.press('Escape')
    await page.getByRole('columnheader', { name: 'Actor' }).waitFor()
    await bar(page).getByText('Changed').waitFor()
    await page
      .getByRole('group', { name: 'Runs by status' })
      .getByRole('button', { name: /Completed/ })
      .click()
    await page.waitForURL(/status=failed,completed/)
    await act(page, 'Save the changes…')
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    await bar(page).getByText('Changed').waitFor({ state: 'detached' })
    expect((await stored())[0]).toMatchObject({ revision: 2, query: { filter: { statuses: ['failed', 'completed'] } } })
    expect((await stored())[0]?.query.columns).toContain('actor')

    await page.goto(`${platform.address}/p/default/workflows`)
    await loaded(page)
    await page.keyboard.press('Control+k')
    await page.getByRole('option', { name: /Broken orders/ }).click()
    await page.waitForURL(/\/runs\?view=/)
    await page.getByText('Status: Failed, Completed').waitFor()
    await page.getByRole('columnheader', { name: 'Actor' }).waitFor()

    await act(page, 'Delete…')
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.waitForURL((url) => !url.search.includes('view='))
    expect(await stored()).toEqual([])
    expect(faults).toEqual([])
    await context.close()
  })

  it('that another operator changed is not overwritten, and what was typed stays', async () => {
    await platform.cli('view', 'save', 'Team', '--status', 'failed')
    const team = async () => (await stored()).find((view) => view.name === 'Team')
    const id = (await team())?.id ?? ''
    const { context, page } = await open(browser, platform.address, `/p/default/runs?view=${id}`)
    await act(page, 'Rename or share…')
    const dialog = page.getByRole('dialog')
    await platform.cli('view', 'save', 'Team', '--status', 'queued', '--revision', '1')
    await dialog.getByLabel('Name').fill('Team two')
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await dialog.getByRole('alert').getByText('VIEW_CHANGED').waitFor()
    expect(await dialog.getByRole('alert').innerText()).toMatch(/local changed view "Team" at \d{4}-/)
    expect(await dialog.getByLabel('Name').inputValue()).toBe('Team two')
    expect(await violations(page)).toEqual([])
    expect(await team()).toMatchObject({ revision: 2, query: { filter: { statuses: ['queued'] } } })
    await context.close()
  })

  it('that does not exist is a part of the filter that cannot be used', async () => {
    const { context, page } = await open(browser, platform.address, '/p/default/runs?view=gone')
    await page.getByText('view=gone: deleted, or not shared with you').waitFor()
    await page
      .getByRole('grid')
      .getByRole('row', { name: /Completed/ })
      .first()
      .waitFor()
    await context.close()
  })
})

describe('the palette', () => {
  it('does what is asked of it', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/p/default/workflows')
    await loaded(page)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('fail again')
    await page.getByRole('option', { name: 'Show runs that fail again and again' }).click()
    await page.waitForURL(/\/runs\?retrying=any/)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('start a run')
    await page.getByRole('option', { name: 'Start a run…' }).click()
    await page.getByRole('dialog', { name: 'Run a workflow' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('dark theme')
    await page.getByRole('option', { name: 'Use the dark theme' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark')
    expect(faults).toEqual([])
    await context.close()
  })
})
