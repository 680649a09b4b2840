-- The common part of all scripts. KEYS[1] is the entry, a hash. Times are microseconds since 1970 by the server's clock. Numbers are
-- formatted without an exponent, since they have more digits than Lua prints by default.
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local names = {'holder', 'token', 'revision', 'acquired', 'renewed', 'expires', 'retention', 'resigned', 'value'}
local before_names = {}
for i, name in ipairs(names) do before_names[i] = 'before.' .. name end
local texts = {holder = true, token = true, value = true}

local function text(number) return string.format('%.0f', number) end

-- entry returns the fields by name; nil if the key does not exist; nil and the reason if its value is no entry.
local function entry()
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then return nil end
  if kind ~= 'hash' then return nil, 'it is a ' .. kind .. ', not a hash' end
  local found = redis.call('HMGET', key, unpack(names))
  local e = {}
  for i, name in ipairs(names) do
    local value = found[i]
    if not value then return nil, 'it has no field ' .. name end
    if texts[name] then
      e[name] = value
    else
      -- Beyond 2^52, adding one may change nothing.
      e[name] = string.match(value, '^%d+$') and tonumber(value)
      if not e[name] or e[name] > 4503599627370496 then return nil, 'its field ' .. name .. ' is not a valid number' end
    end
  end
  if e.holder == '' or e.token == '' then return nil, 'its holder or its token is empty' end
  return e
end

local function held(e) return e.resigned == 0 and now < e.expires end

-- put writes fields with a new revision. It is derived from the clock, so that it also grows after a deletion. A command that Redis refuses
-- ends a script and does not undo what it wrote before. So PEXPIRE comes first: without the key it changes nothing.
local function put(e, changed)
  changed.revision = math.max(e.revision + 1, now)
  local fields = {}
  for name, value in pairs(changed) do
    e[name] = value
    fields[#fields + 1] = name
    fields[#fields + 1] = texts[name] and value or text(value)
  end
  redis.call('PEXPIRE', key, text(e.retention))
  redis.call('HSET', key, unpack(fields))
  redis.call('PEXPIRE', key, text(e.retention))
end

-- forget removes the before fields.
local function forget() redis.call('HDEL', key, unpack(before_names)) end

-- add appends the fields of an entry to a reply.
local function add(reply, e)
  for _, name in ipairs(names) do
    reply[#reply + 1] = texts[name] and e[name] or text(e[name])
  end
  return reply
end

-- notify publishes a key to watchers. Errors are ignored, so that a user without the right to publish can use the scripts.
local function notify(channel, what) redis.pcall('PUBLISH', channel, what) end
