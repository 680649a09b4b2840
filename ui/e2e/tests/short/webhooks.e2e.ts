import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, loaded, open, violations } from '../../browser'
import { type Platform, startPlatform, until } from '../../platform'

let platform: Platform
let browser: Browser

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startPlatform(), launch()])
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

interface Webhook {
  name: string
  status: string
  url: string
  filter: { types: string[]; with?: unknown }
  lastError?: string
}
const show = async (name: string) => JSON.parse(await platform.cli('webhook', 'show', name, '-o', 'json')) as Webhook
const row = (page: Page, words: RegExp) => page.getByRole('grid').getByRole('row', { name: words }).first()

describe('a webhook', () => {
  it('is created by the dialog, which shows refusals at their fields and the secret once', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/p/default/webhooks')
    await page.getByText('No webhooks in default yet.').waitFor()
    await page.getByRole('main').getByRole('button', { name: 'Create…' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Orders!')
    await dialog.getByLabel('Address of the receiver').fill('ftp://hooks.example.com')
    await dialog.getByLabel('Types of events').fill('com.example.*\nio.signalbox.run.failed')
    await dialog.getByLabel('Condition on attributes').fill('{"source": ')
    const refused = async (label: string, words: RegExp) => {
      await dialog.getByRole('button', { name: 'Create', exact: true }).click()
      const field = dialog.getByLabel(label)
      await until(`${label} is refused`, async () => (await field.getAttribute('aria-invalid')) === 'true')
      await dialog.getByText(words).first().waitFor()
    }
    await refused('Name', /does not match/)
    expect(await violations(page)).toEqual([])
    await dialog.getByLabel('Name').fill('orders')
    await refused('Address of the receiver', /must begin with https/)
    await dialog.getByLabel('Address of the receiver').fill(`${platform.stock}/stock/orders?key=hidden`)
    await refused('Condition on attributes', /JSON|YAML|value/i)
    await dialog.getByLabel('Condition on attributes').fill('{"source": "/shop"}')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    const secret = page.getByRole('dialog', { name: 'The secret of orders' })
    const text = await secret.getByText(/^whsec_/).innerText()
    expect(text).toMatch(/^whsec_[A-Za-z0-9+/=]{32,}$/)
    expect(await violations(page)).toEqual([])
    await secret.getByRole('button', { name: 'Done' }).click()
    await page.waitForURL(/\/webhooks\/orders$/)
    await page.getByText('No deliveries yet.').waitFor()
    await page.reload()
    await page.getByText('No deliveries yet.').waitFor()
    expect(await page.content()).not.toContain(text)
    expect(await page.content()).not.toContain('key=hidden')
    expect(await show('orders')).toMatchObject({
      status: 'active',
      filter: { types: ['com.example.*', 'io.signalbox.run.failed'], with: { source: '/shop' } },
    })
    expect(faults).toEqual([])
    await context.close()
  })

  it('is tested, and an event that matches is delivered to it', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/p/default/webhooks/orders')
    await page.getByRole('button', { name: 'Send a test event' }).click()
    await page.getByText('The receiver accepted the test event with 200.').first().waitFor()
    await row(page, /Delivered .*io\.signalbox\.webhook\.test test 1 .*accepted with 200/).waitFor()
    await platform.cli(
      'event',
      'send',
      '--type',
      'com.example.placed',
      '--source',
      '/shop',
      '--data',
      '{"order":"A-1"}',
    )
    await row(page, /Delivered .*com\.example\.placed \d+ 1 .*accepted with 200/).waitFor()
    expect(faults).toEqual([])
    await context.close()
  })

  it('that fails says since when and why; its delivery is sent again when the address is right', async () => {
    await platform.cli(
      'webhook',
      'create',
      'broken',
      '--url',
      `${platform.stock}/stock/broken-pager`,
      '--type',
      'com.example.failed',
    )
    await platform.cli(
      'event',
      'send',
      '--type',
      'com.example.failed',
      '--source',
      '/shop',
      '--data',
      '{"order":"A-2"}',
    )
    const { context, page, faults } = await open(browser, platform.address, '/p/default/webhooks')
    await row(page, /Failing broken .*503/)
      .getByRole('link', { name: 'broken' })
      .click()
    await page.getByRole('status', { name: 'Alerts' }).getByText('The receiver does not accept events.').waitFor()
    await row(page, /Pending .*com\.example\.failed \d+ \d+ (in \d|now) .*503/).waitFor()
    await page.getByRole('button', { name: 'Change…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Save', exact: true }).hover()
    await page.getByRole('tooltip', { name: 'Nothing is changed.' }).waitFor()
    await dialog.getByLabel('Address of the receiver').fill(`${platform.stock}/stock/mended`)
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    expect((await show('broken')).filter.types).toEqual(['com.example.failed'])

    await row(page, /com\.example\.failed/)
      .getByRole('button', { name: 'Redeliver…' })
      .click()
    await dialog.getByLabel('Reason').fill('the receiver is back')
    await dialog.getByRole('button', { name: 'Redeliver', exact: true }).click()
    await row(page, /Delivered .*com\.example\.failed/)
      .getByRole('link')
      .first()
      .click()
    await page.waitForURL(/\/webhooks\/broken\/deliveries\/msg_/)
    const attempts = page.getByRole('region', { name: /^Time, HTTP/ }).locator('tbody tr')
    await until('the attempts', async () => (await attempts.count()) >= 2)
    expect(await attempts.first().innerText()).toMatch(/200[^]*accepted[^]*reserved/)
    expect(await attempts.last().innerText()).toMatch(/503[^]*stock service did not answer/)
    await page.getByText('"order": "A-2"').waitFor()
    const path = new URL(page.url()).pathname
    await page.goto(`${platform.address}/p/default/runs`)
    await loaded(page)
    await page.keyboard.press('Control+k')
    await page.getByPlaceholder('ID, label, error').fill(path.split('/').at(-1) ?? '')
    await page.getByRole('option', { name: /^msg_.* to broken/ }).click()
    await page.waitForURL((url) => url.pathname === path)
    expect(faults).toEqual([])
    await context.close()
  })

  it('is paused with its reason, continued, given a new secret, and deleted', async () => {
    const { context, page, faults } = await open(browser, platform.address, '/p/default/webhooks/orders')
    const dialog = page.getByRole('dialog')
    const alerts = page.getByRole('status', { name: 'Alerts' })
    await page.getByRole('button', { name: 'Pause…' }).click()
    await dialog.getByLabel('Reason').fill('the receiver moves')
    await dialog.getByRole('button', { name: 'Pause', exact: true }).click()
    await alerts.getByText('the receiver moves').waitFor()
    await page.getByRole('button', { name: 'Send a test event' }).hover()
    await page.getByRole('tooltip', { name: 'The webhook is paused.' }).waitFor()
    await page.getByRole('button', { name: 'Unpause' }).click()
    await alerts.waitFor({ state: 'detached' })
    expect((await show('orders')).status).toBe('active')

    // The copied call does the same.
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'Pause…' }).click()
    await dialog.getByLabel('Reason').fill("by 'curl'")
    await dialog.getByRole('button', { name: 'Copy curl' }).click()
    await page.getByText('Call by curl copied.').first().waitFor()
    await promisify(execFile)('bash', ['-c', await page.evaluate(async () => navigator.clipboard.readText())])
    await dialog.getByRole('button', { name: 'Close', exact: true }).first().click()
    await page.getByRole('button', { name: 'Discard' }).click()
    await alerts.getByText("by 'curl'").waitFor()
    await page.getByRole('button', { name: 'Unpause' }).click()
    await alerts.waitFor({ state: 'detached' })

    const more = async (item: string) => {
      await page.getByRole('button', { name: 'More', exact: true }).click()
      await page.getByRole('menuitem', { name: item }).click()
    }
    await more('Rotate the secret…')
    await dialog.getByRole('button', { name: 'Rotate', exact: true }).click()
    await page
      .getByRole('dialog', { name: 'The new secret of orders' })
      .getByText(/^whsec_/)
      .waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByText('Previous secret valid until').waitFor()

    await more('Delete…')
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.waitForURL(/\/webhooks$/)
    await row(page, /broken/).waitFor()
    expect(await page.getByRole('grid').getByRole('link', { name: 'orders' }).count()).toBe(0)
    expect(faults).toEqual([])
    await context.close()
  })
})
