// A browser on the platform: contexts by theme and size, what a page did wrong, and the rules of accessibility.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContext, chromium, type Cookie, type Page } from 'playwright-core'

/** launch starts Debian's Chromium without any request of its own to the network. */
export async function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

export interface View {
  theme?: 'light' | 'dark'
  width?: number
  height?: number
  /** The cookies of a session. */
  cookies?: Cookie[]
}

/** newContext returns what a person's browser holds between pages: its cache, cookies and settings. */
export async function newContext(
  browser: Browser,
  { theme = 'light', width = 1280, height = 800, cookies = [] }: View = {},
): Promise<BrowserContext> {
  const context = await browser.newContext({
    colorScheme: theme,
    viewport: { width, height },
    reducedMotion: 'reduce',
    timezoneId: 'Europe/Stockholm',
  })
  await context.addCookies(cookies)
  return context
}

export interface Observed {
  context: BrowserContext
  page: Page
  /** Errors in the console, violations of the content security policy, uncaught errors, and requests that left the origin. */
  faults: string[]
}

/** open opens a page in a context of its own and notes what it does wrong. */
export async function open(browser: Browser, origin: string, path: string, view?: View): Promise<Observed> {
  return openIn(await newContext(browser, view), origin, path)
}

/** openIn is open in a context that exists: the app is in its cache after the first page. */
export async function openIn(context: BrowserContext, origin: string, path: string): Promise<Observed> {
  const page = await context.newPage()
  const faults: string[] = []
  page.on('console', (message) => {
    // The browser itself reports answers of 4xx and 5xx; pages show those in words.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      faults.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => {
    faults.push(`uncaught: ${error.message}`)
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:') && !request.url().startsWith('blob:'))
      faults.push(`left the origin: ${request.url()}`)
  })
  await page.goto(origin + path)
  await loaded(page)
  return { context, page, faults }
}

/** loaded waits until the page shows its data or says why it does not. */
export async function loaded(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor()
  await page.waitForFunction(() => document.querySelector('main [aria-label=Loading]') === null)
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** violations returns what axe finds on the page, one line each; with rules, by those alone. */
export async function violations(page: Page, rules?: string[]): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(async (only) => {
    interface Result {
      violations: { id: string; help: string; nodes: { target: string[]; failureSummary?: string }[] }[]
    }
    const run = (window as unknown as { axe: { run: (context: Document, options: object) => Promise<Result> } }).axe.run
    const result = await run(document, {
      resultTypes: ['violations'],
      ...(only === undefined ? {} : { runOnly: only }),
    })
    return result.violations.flatMap((v) =>
      v.nodes.map((node) => `${v.id}: ${v.help}: ${node.target.join(' ')} ${node.failureSummary ?? ''}`),
    )
  }, rules)
}
