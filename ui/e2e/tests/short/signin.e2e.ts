import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, open, violations } from '../../browser'
import { type Servers, startServer } from '../../platform'

let server: Servers
let browser: Browser

beforeAll(async () => {
  ;[server, browser] = await Promise.all([startServer(), launch()])
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** The addresses of all pages, as the router has them, with values in place of parameters. */
function addresses(): string[] {
  const source = readFileSync(join(import.meta.dirname, '../../../src/shell/router.tsx'), 'utf8')
  const found = [...source.matchAll(/\b(page|top)\('([^']+)'/g)].map(([, kind, path]) =>
    kind === 'page' ? `/p/default${path ?? ''}` : (path ?? ''),
  )
  return ['/', ...found].map((path) => path.replaceAll(/\$\w+/g, 'default'))
}

/** Opens every page and expects that each asks to sign in. */
async function isAskedForEverywhere(page: Page): Promise<void> {
  for (const address of addresses()) {
    await page.goto(`${server.address}${address}`)
    await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
    expect(await page.getByText('This page failed').count(), address).toBe(0)
  }
}

describe('sign-in', () => {
  it('is what the front door shows, and leads to the page behind it', async () => {
    const { context, page } = await open(browser, server.address, '/')
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    await signIn(page, server.admin)
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/p/default/runs')
    await context.close()
  })

  it('is asked for on every page without a session, and on no page with the session of a viewer', async () => {
    const { context, page, faults } = await open(browser, server.address, '/')
    await isAskedForEverywhere(page)
    await page.goto(`${server.address}/sign-in`)
    await signIn(page, server.viewer)
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor()
    await page.getByRole('status', { name: 'Connections' }).getByText('Connected').waitFor()
    const denied: string[] = []
    page.on('response', (response) => {
      if (response.status() === 403) denied.push(response.url())
    })
    for (const address of addresses().filter((one) => one !== '/sign-in')) {
      await page.goto(`${server.address}${address}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      expect(await page.getByRole('button', { name: 'Sign in', exact: true }).count(), address).toBe(0)
      expect(await page.getByText('This page failed').count(), address).toBe(0)
    }
    expect(faults.filter((fault) => !/40[134]/.test(fault))).toEqual([])
    expect([...new Set(denied)], 'what the viewer may not read is not asked for').toEqual([])
    await context.close()
  })

  it('does not hide that there is no page', async () => {
    const { context, page } = await open(browser, server.address, '/sign-in?next=/no/such/page')
    await signIn(page, server.admin)
    await page.getByText('There is no page at this address.').waitFor()
    const answer = await page.goto(`${server.address}/problem`)
    expect(answer?.status()).toBe(404)
    await page.getByText('There is no page at this address.').waitFor()
    await context.close()
  })

  it('refuses a wrong token with the reason, and nothing of the server is shown before', async () => {
    const { context, page } = await open(browser, server.address, '/sign-in')
    await signIn(page, 'sbx_wrong')
    await page.getByRole('alert').waitFor()
    expect(page.url()).toContain('/sign-in')
    expect(await violations(page)).toEqual([])
    await context.close()
  })

  it('opens a session whose cookie scripts cannot read, keeps the token nowhere, and ends', async () => {
    const { context, page, faults } = await open(browser, server.address, '/sign-in?next=/access')
    await signIn(page, server.admin)
    await page.getByRole('heading', { level: 1, name: 'Access' }).waitFor()
    const [cookie] = await context.cookies()
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    expect(await page.evaluate(() => document.cookie)).toBe('')
    const kept = await page.evaluate(() =>
      JSON.stringify([Object.entries(window.localStorage), Object.entries(window.sessionStorage), location.href]),
    )
    expect(kept).not.toContain(server.admin)
    expect(cookie?.value).not.toContain(server.admin)
    expect(faults).toEqual([])

    await page.getByRole('button', { name: /Settings of ada/ }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.waitForURL(/\/sign-in/)
    await page.goto(`${server.address}/access`)
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor()
    await context.close()
  })

  it.each(['//evil.example/x', 'https://evil.example/x', '/\\evil.example'])(
    'never leads to another site: %s',
    async (next) => {
      const { context, page } = await open(browser, server.address, `/sign-in?next=${encodeURIComponent(next)}`)
      await signIn(page, server.admin)
      await page.waitForURL((url) => !url.pathname.startsWith('/sign-in'))
      expect(page.url().startsWith(server.address)).toBe(true)
      await context.close()
    },
  )

  it('of a viewer leaves controls off and says which role they need', async () => {
    const { context, page } = await open(browser, server.address, '/sign-in?next=/p/default/events')
    await signIn(page, server.viewer)
    const send = page.getByRole('button', { name: 'Send a test event…' })
    await send.waitFor()
    await send.hover()
    await page.getByRole('tooltip', { name: 'Needs operator in default' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('option', { name: 'Webhooks' }).click()
    const create = page.getByRole('button', { name: 'Create…' }).first()
    await create.waitFor()
    await create.hover()
    await page.getByRole('tooltip', { name: 'Needs admin in default' }).waitFor()
    await context.close()
  })

  it('is asked for over the page when the session has ended, and on every page from then on', async () => {
    const { context, page } = await open(browser, server.address, '/sign-in?next=/p/default/events')
    await signIn(page, server.viewer)
    await page.getByRole('heading', { level: 1, name: 'Events' }).waitFor()
    await server.revoke(server.viewer)
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor({ timeout: 30_000 })
    expect(page.url()).toContain('/p/default/events')
    expect(await context.cookies(), 'the session that has ended is still sent').toHaveLength(1)
    await isAskedForEverywhere(page)
    await page.goto(`${server.address}/p/default/events`)
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor()
    await signIn(page, server.admin)
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor({ state: 'detached' })
    await context.close()
  })
})
