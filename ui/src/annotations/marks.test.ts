import { create } from '@bufbuild/protobuf'
import { describe as group, expect, it } from 'vitest'
import { type Annotation, AnnotationSchema } from '../gen/signalbox/v1/project_pb'
import { annotationsIn, bands, describe, groups } from './marks'

const at = (seconds: number) => ({ seconds: BigInt(seconds), nanos: 0 })
const made = (kind: string, start: number, end: number | undefined, title = `${kind} ${start}`): Annotation =>
  create(AnnotationSchema, { kind, title, start: at(start), ...(end === undefined ? {} : { end: at(end) }) })
const share = (ms: number) => Math.min(1, Math.max(0, ms / 100_000))
const print = (ms: number) => `${ms / 1000} s`

group('the marks of a chart', () => {
  it('are bands for outages; one that lasts goes on until now', () => {
    const list = [made('outage', 10, 20), made('outage', 60, undefined), made('publish', 5, 5)]
    expect(bands(list, share, 80_000).map(({ left, width }) => [left, Number(width.toFixed(6))])).toEqual([
      [0.1, 0.1],
      [0.6, 0.2],
    ])
  })

  it('are joined where they are too near, by kind', () => {
    const list = [
      made('publish', 1, 1),
      made('owner', 2, 2),
      made('publish', 3, 3),
      made('publish', 50, 50),
      made('other', 50, 50),
    ]
    expect(
      groups(list, share, 10).map(({ left, parts }) => [left, parts.map((p) => `${p.annotations.length} ${p.kind}`)]),
    ).toEqual([
      [0.01, ['2 publish', '1 owner']],
      [0.5, ['1 publish']],
    ])
  })

  it('say what happened and when', () => {
    expect(describe([made('publish', 5, 5, 'shop/order 1.1.0 was published')], print)).toBe(
      'shop/order 1.1.0 was published, 5 s',
    )
    expect(describe([made('outage', 1, 9, 'Down'), made('outage', 20, undefined, 'Down')], print)).toBe(
      'Down, 1 s to 9 s\nDown, since 20 s',
    )
    expect(
      describe(
        [1, 2, 3].map((n) => made('owner', n, n)),
        print,
        2,
      ),
    ).toBe('owner 1, 1 s\nowner 2, 2 s\nand 1 more')
  })

  it('overlap a period whose end is exclusive', () => {
    const list = [made('outage', 10, 20), made('outage', 60, undefined), made('publish', 30, 30)]
    expect(annotationsIn(list, 15_000, 30_000).map((a) => a.title)).toEqual(['outage 10'])
    expect(annotationsIn(list, 30_000, 70_000).map((a) => a.title)).toEqual(['outage 60', 'publish 30'])
  })
})
