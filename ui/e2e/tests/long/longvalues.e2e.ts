// Long values fit every page at each size: nothing leaves the page, no word is broken into single letters.
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launch, loaded, open } from '../../browser'
import { seedLong, sizes } from '../../longvalues'
import { type Platform, startPlatform } from '../../platform'

let platform: Platform
let browser: Browser
let pages: Record<string, string>

beforeAll(async () => {
  ;[platform, browser] = await Promise.all([startPlatform(), launch()])
  pages = await seedLong(platform)
})

afterAll(async () => {
  await browser.close()
  await platform.stop()
})

/** Texts that wrap into lines of a few letters. */
const letters = async (page: Page) =>
  page.evaluate(() => {
    const found: string[] = []
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const range = document.createRange()
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      range.selectNodeContents(node)
      const { width, height } = range.getBoundingClientRect()
      if ((node.textContent ?? '').length >= 8 && width > 4 && width < 40 && height > 60)
        found.push(`${String(Math.round(width))} px: ${node.textContent ?? ''}`)
    }
    return found
  })

/** The elements that make the page wider, the innermost ones. */
const beyond = async (page: Page, width: number) =>
  page.evaluate((edge) => {
    const scrolls = (element: Element): boolean =>
      getComputedStyle(element).overflowX !== 'visible' ||
      (element.parentElement !== null && element !== document.body && scrolls(element.parentElement))
    const wide = [...document.body.querySelectorAll('*')].filter(
      (element) =>
        element.getBoundingClientRect().right > edge &&
        element.parentElement !== null &&
        !scrolls(element.parentElement),
    )
    return wide
      .filter((element) => !wide.some((other) => other !== element && element.contains(other)))
      .slice(0, 3)
      .map(
        (element) =>
          `${element.tagName} ${element.getAttribute('class') ?? ''}: ${(element.textContent ?? '').slice(0, 60)}`,
      )
  }, width)

describe('long values', () => {
  it.each(sizes.map(([width, height]) => ({ width, height })))(
    'fit every page at $width px',
    { timeout: 300_000 },
    async ({ width, height }) => {
      const wrong: string[] = []
      const { context, page, faults } = await open(browser, platform.address, '/system', { width, height })
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(platform.address + path)
        await loaded(page)
        const over = (await page.evaluate(() => document.documentElement.scrollWidth)) - width
        const grids = await page.evaluate(() =>
          [...document.querySelectorAll('[role=grid]')]
            .map((grid) => grid.scrollWidth - grid.clientWidth)
            .filter((more) => more > 0),
        )
        if (over > 0)
          wrong.push(`${name}: the page is ${String(over)} px too wide: ${(await beyond(page, width)).join('; ')}`)
        if (grids.length > 0) wrong.push(`${name}: a table is ${grids.join(', ')} px too wide`)
        wrong.push(...(await letters(page)).map((cell) => `${name}: ${cell}`))
      }
      expect(wrong).toEqual([])
      expect(faults).toEqual([])
      await context.close()
    },
  )
})
