import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { isObject, printJson } from '../api'
import { RunSchema } from '../gen/signalbox/v1/run_pb'
import { runDocument } from './document'

/** member prints one member of the document of a run. */
const member = (run: MessageInitShape<typeof RunSchema>, name: string) => {
  const document = runDocument(create(RunSchema, run))
  const value = isObject(document) ? document.get(name) : undefined
  return value === undefined ? undefined : printJson(value)
}

describe('a run as REST returns it', () => {
  it('has payloads inline, with every digit and in their order', () => {
    const json = '{"b":12345678901234567890.10,"a":[1e400]}'
    expect(member({ input: { json } }, 'input')).toBe(json)
    expect(member({ output: { json: 'null' } }, 'output')).toBe('null')
  })

  it('has a payload that cannot be read as a text', () => {
    expect(member({ input: { json: '{"a":' } }, 'input')).toBe('"{\\"a\\":"')
  })

  it('has 64-bit numbers as numbers, also in messages and lists', () => {
    expect(member({ stepsTotal: 9007199254740993n }, 'stepsTotal')).toBe('9007199254740993')
    expect(member({ sequence: 7n }, 'sequence')).toBe('7')
    expect(member({ failedStep: { number: 12n, task: '12' } }, 'failedStep')).toBe('{"number":12,"task":"12"}')
    expect(member({ waits: [{ step: 3n, what: '3' }] }, 'waits')).toBe('[{"what":"3","step":3}]')
    expect(member({ stepSummary: { steps: 2n, tasks: [{ count: 5n, task: 'a' }] } }, 'stepSummary')).toBe(
      '{"steps":2,"tasks":[{"task":"a","count":5}]}',
    )
  })

  it('has labels as they are, whatever their names and values', () => {
    expect(member({ labels: { count: '007', number: 'x' } }, 'labels')).toBe('{"count":"007","number":"x"}')
    expect(member({ labels: { json: '5' } }, 'labels')).toBe('{"json":"5"}')
  })

  it('has times as texts', () => {
    expect(member({ createTime: { seconds: 1_700_000_000n } }, 'createTime')).toBe('"2023-11-14T22:13:20Z"')
  })
})
