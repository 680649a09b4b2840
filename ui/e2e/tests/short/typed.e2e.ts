// What an operator types and points at while another one changes the same things.
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, open } from '../../browser'
import { type Platform, seed, startPlatform, until } from '../../platform'

let platform: Platform
let browser: Browser
let ids: Record<string, string>
let problem: string

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startPlatform(), launch()])
  ids = await seed(platform)
  problem = await until('there is a problem', async () => {
    const found = JSON.parse(await platform.cli('problem', 'list', '--kind', 'failure', '-o', 'json')) as {
      id: string
      title: string
    }[]
    return found.find(({ title }) => title === 'Not Found')?.id
  })
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

const rowOf = (page: Page) => page.getByRole('grid').getByRole('row').filter({ hasText: 'Not Found' })
const counted = (page: Page, state: string) => page.getByRole('tab', { name: new RegExp(`^${state} 1$`) })

describe('the dialog of owner and note', () => {
  it.each(['list', 'drawer'])(
    'opened from the %s keeps what is typed when another operator acknowledges, and shows that',
    async (from) => {
      const { context, page, faults } = await open(browser, platform.address, '/problems?kind=failure')
      context.setDefaultTimeout(15_000)
      if (from === 'drawer') await rowOf(page).click()
      const place = from === 'drawer' ? page.getByRole('dialog', { name: 'Not Found' }) : rowOf(page)
      await place.getByRole('button', { name: 'More actions' }).click()
      await page.getByRole('menuitem', { name: 'Owner and note…' }).click()
      // The item of the menu does not open the row beneath it.
      expect(new URL(page.url()).searchParams.has('id')).toBe(from === 'drawer')
      const dialog = page.getByRole('dialog', { name: 'Owner and note' })
      await dialog.getByLabel('Note').fill(`from the ${from}`)
      await platform.cli('problem', 'acknowledge', problem)
      await platform.cli('problem', 'update', problem, '--owner', 'dora')
      await dialog.getByText(/^It is acknowledged now/).waitFor()
      await until(
        'the owner is that of the other operator',
        async () => (await dialog.getByLabel('Owner').inputValue()) === 'dora',
      )
      expect(await dialog.getByLabel('Note').inputValue()).toBe(`from the ${from}`)
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.waitFor({ state: 'detached' })
      expect(JSON.parse(await platform.cli('problem', 'show', problem, '-o', 'json'))).toMatchObject({
        owner: 'dora',
        note: `from the ${from}`,
        state: 'acknowledged',
      })
      if (from === 'drawer') await place.getByText('acknowledged', { exact: false }).first().waitFor()
      await platform.cli('problem', 'reopen', problem)
      await platform.cli('problem', 'update', problem, '--owner', '')
      expect(faults).toEqual([])
      await context.close()
    },
  )
})

describe('the rows of a list', () => {
  it('stay in their place while the pointer is in the list', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/problems?kind=failure')
    context.setDefaultTimeout(15_000)
    await rowOf(page).hover()
    await platform.cli('problem', 'acknowledge', problem)
    await counted(page, 'Acknowledged').waitFor()
    await until('the row is weaker', async () =>
      rowOf(page).evaluate((row) => [...row.children].every((cell) => getComputedStyle(cell).opacity !== '1')),
    )
    await page.getByRole('heading', { level: 1 }).hover()
    await rowOf(page).waitFor({ state: 'detached' })
    await platform.cli('problem', 'reopen', problem)
    expect(faults).toEqual([])
    await context.close()
  })
})

describe('typed text', () => {
  it.each([
    ['Escape', async (page: Page) => page.keyboard.press('Escape')],
    [
      'the button Close',
      async (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click(),
    ],
    [
      'the way back',
      async (page: Page) =>
        page.evaluate(() => {
          history.back()
        }),
    ],
  ])('is not dropped unasked by %s', async (_, leave) => {
    const { context, page, faults } = await open(
      browser,
      platform.address,
      '/p/default/runs?status=waiting&workflow=shop/wait',
    )
    await page.getByRole('grid').getByRole('link').first().click()
    await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/)
    await page.getByRole('button', { name: 'Cancel…' }).click()
    const dialog = page.getByRole('dialog', { name: /^Cancel/ })
    await dialog.getByLabel('Reason').fill('half a senten')
    await leave(page)
    const question = page.getByRole('dialog', { name: 'Discard what you typed?' })
    await question.getByRole('button', { name: 'Keep editing' }).click()
    expect(await dialog.getByLabel('Reason').inputValue()).toBe('half a senten')
    await leave(page)
    await question.getByRole('button', { name: 'Discard' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(faults).toEqual([])
    await context.close()
  })

  it('that was deleted again needs no question', async () => {
    const { context, page } = await open(browser, platform.address, `/p/default/runs/${ids.waiting ?? ''}`)
    await page.getByRole('button', { name: 'Cancel…' }).click()
    const dialog = page.getByRole('dialog', { name: /^Cancel/ })
    await dialog.getByLabel('Reason').fill('x')
    await dialog.getByLabel('Reason').fill('')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await context.close()
  })
})
