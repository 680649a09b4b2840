-- ARGV: token, revision, channel, key without prefix.
local e, why = entry()
if why then return {'malformed', why} end
if not e then return {'none'} end
if e.token ~= ARGV[1] or text(e.revision) ~= ARGV[2] then return {'changed'} end
redis.call('DEL', key)
notify(ARGV[3], ARGV[4])
return {'deleted'}
