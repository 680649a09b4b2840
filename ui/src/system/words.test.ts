import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import {
  CheckRestoreResponseSchema,
  QueueLineSchema,
  QueueSchema,
  StoreFactsSchema,
} from '../gen/signalbox/v1/system_pb'
import {
  backlogText,
  databaseText,
  differences,
  keysText,
  known,
  listText,
  lostText,
  pollersText,
  pollingText,
  poolText,
  reportedText,
  schemaText,
  unknownLine,
} from './words'

const check = (given: MessageInitShape<typeof CheckRestoreResponseSchema> = {}) =>
  create(CheckRestoreResponseSchema, given)
const line = (given: MessageInitShape<typeof QueueLineSchema> = {}) => create(QueueLineSchema, given)
const store = (given: MessageInitShape<typeof StoreFactsSchema> = {}) => create(StoreFactsSchema, given)

describe('a part of a restore check', () => {
  it('is unknown with the reason, and then nothing of it is read', () => {
    const failing = check({ errors: { rows: 'the store does not answer' } })
    const value = () => {
      throw new Error('read')
    }
    expect(known(failing, 'rows', value)).toBe('unknown: the store does not answer')
    expect(known(failing, 'keys', () => 'two')).toBe('two')
  })
})

describe('the executions without a row', () => {
  it('are none, or listed by their age', () => {
    expect(lostText(check())).toBe('none')
    expect(lostText(check({ lost: { open: 1000n, ended: 2n, upToHour: 1n, upToDay: 2n, older: 999n } }))).toBe(
      '1,002: 1,000 open, 2 ended; started up to an hour ago 1, up to a day 2, earlier 999',
    )
  })

  it('may be too young to tell', () => {
    expect(lostText(check({ lost: { young: 3n } }))).toBe(
      '0: 0 open, 0 ended; started up to an hour ago 0, up to a day 0, earlier 0; 3 more started too recently to tell',
    )
  })
})

describe('the differences from Temporal', () => {
  const found = check({
    differences: { finished: 2n, caught_up: 3n, reopened_in_temporal: 1n },
    comparison: { foreign: [{ count: 4n }, { count: 5n }] },
  })

  it('are added up by their kinds', () => {
    expect(differences(found, 'finished', 'caught_up')).toBe(5n)
    expect(differences(found, 'execution_missing')).toBe(0n)
  })

  it('are only reported where nothing can correct them', () => {
    expect(reportedText(found)).toBe(
      '9 executions without a published workflow, 1 run that ended here and open in Temporal',
    )
    expect(reportedText(check())).toBe(
      '0 executions without a published workflow, 0 runs that ended here and open in Temporal',
    )
  })
})

describe('what else a restored database may lack', () => {
  it('is a key of sealed values', () => {
    expect(keysText(check())).toBe('nothing was sealed yet')
    expect(
      keysText(
        check({
          sealingKeys: [
            { id: 'k1', openRuns: 1n, configured: true },
            { id: 'k2', openRuns: 2n, configured: false },
          ],
        }),
      ),
    ).toBe('k1: 1 open run; k2: 2 open runs, this server does not have it')
  })

  it('is listed by name, up to five', () => {
    expect(listText(3n, 'schedule', [], 'not as in Temporal')).toBe('3 schedules')
    expect(listText(1n, 'schedule', ['a'], 'not as in Temporal')).toBe('1 schedule, 1 not as in Temporal: a')
    expect(listText(undefined, 'schedule', [...'abcdef'], 'lost')).toBe('0 schedules, 6 lost: a, b, c, d, e')
  })
})

describe('a task queue', () => {
  it('has a backlog with the age of the oldest task', () => {
    expect(backlogText(line())).toBe('unknown')
    expect(backlogText(line({ backlog: 0n, backlogAge: { seconds: 5n } }))).toBe('0')
    expect(backlogText(line({ backlog: 1200n }))).toBe('1,200')
    expect(backlogText(line({ backlog: 1200n, backlogAge: { seconds: 61n } }))).toBe('1,200, the oldest for 1m 01s')
  })

  it('has pollers, and busy ones', () => {
    expect(pollersText(line({ pollers: 2n }))).toBe('2')
    expect(pollersText(line({ pollers: 0n, busy: 1n }))).toBe('0, 1 busy')
  })

  it('is unknown where Temporal did not report it', () => {
    expect(unknownLine(create(QueueSchema, { error: 'timeout' }))).toBe('unknown: timeout')
    expect(unknownLine(create(QueueSchema, {}))).toBe('unknown: the server did not report it')
  })
})

describe('the database', () => {
  it.each([
    ['postgres', '17.2', 'Postgres 17.2'],
    ['sqlite', '', 'SQLite of unknown version'],
    ['other', '1', 'other 1'],
  ])('%s of version %j is %s', (driver, version, text) => {
    expect(databaseText(store({ driver, version }))).toBe(text)
  })

  it('has the schema that is there, and the one that is required', () => {
    expect(schemaText(store({ requiredSchema: 4n }))).toBe('unknown, required 4')
    expect(schemaText(store({ schema: 3n, requiredSchema: 4n }))).toBe('3, required 4')
  })

  it('has pools of connections', () => {
    const pool = (given: object) => {
      const [found] = store({ pools: [given] }).pools
      return found === undefined ? '' : poolText(found)
    }
    expect(pool({ inUse: 2n, limit: 10n, waits: 1n })).toBe('2 of 10 in use, 1 wait')
    expect(pool({ inUse: 2n, limit: 0n, waits: 1200n })).toBe('2 of no limit in use, 1,200 waits')
  })
})

describe('a set of workers', () => {
  it('polls, or does not although it runs, or is stopped', () => {
    expect(pollingText({ polling: true, running: true })).toBe('yes')
    expect(pollingText({ polling: false, running: true })).toBe('no: it runs and does not poll')
    expect(pollingText({ polling: false, running: false })).toBe('no: it is stopped')
  })
})
