import type { Tone } from './status'
import styles from './tone.module.css'

/** toneClass returns the classes of the text colour of a tone, and with `tinted` of its background. */
export function toneClass(tone: Tone, tinted = false): string {
  return `${styles[tone] ?? ''} ${tinted ? (styles[`${tone}Tint`] ?? '') : ''}`.trimEnd()
}
