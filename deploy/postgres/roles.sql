-- The two roles of Signalbox in its database. Run it once, connected to that database, as its owner or a superuser; then give both roles
-- a password (\password signalbox_owner). It can be repeated.
--
--   signalbox_owner   owns the tables: runs `signalbox migrate up`, grants.sql, backups and VACUUM. No server uses it.
--   signalbox         serves: every server, with store.auto_migrate=false. grants.sql gives it rights on the tables.
--
-- docs/least-privilege.md has the order of the steps, and the errors when a right is missing.
DO $$
DECLARE
    role TEXT;
BEGIN
    FOREACH role IN ARRAY ARRAY['signalbox_owner', 'signalbox'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', role);
        END IF;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role);
    END LOOP;
    -- Without this every role of the server may connect, and create temporary tables.
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
END
$$;
-- With it the owner sees the statements of the servers in pg_stat_activity. Only a superuser, or a role that may grant it, can give it.
DO $$
BEGIN
    GRANT pg_read_all_stats TO signalbox_owner;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'signalbox_owner cannot read the statements of other roles: a superuser grants it pg_read_all_stats';
END
$$;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO signalbox_owner;
GRANT USAGE ON SCHEMA public TO signalbox;
